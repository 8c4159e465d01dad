package config

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultIsValid(t *testing.T) {
	t.Parallel()
	if err := Default().Validate(); err != nil {
		t.Errorf("Default().Validate() = %v, want nil", err)
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	t.Parallel()
	c := Config{AMQPAddr: "localhost", HTTPAddr: "127.0.0.1:http", AMQPSAddr: ":5671", LogLevel: "loud"}
	err := c.Validate()
	if err == nil {
		t.Fatal("Validate() = nil, want faults")
	}
	for _, want := range []string{
		`amqp-addr: "localhost" is not HOST:PORT`, `http-addr: port "http"`, "data-dir: is empty",
		"amqps-addr: needs tls-cert and tls-key", "default-user: is empty",
		"stop-timeout: is 0s", `log-level: "loud" is not one of [debug info warn error]`,
		"log-format:",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("Validate() lacks %q, got:\n%v", want, err)
		}
	}
}

func TestValidateAddresses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		edit func(*Config)
		want string // part of the error; empty = valid
	}{
		{"free port", func(c *Config) { c.AMQPAddr = "127.0.0.1:0" }, ""},
		{"all interfaces", func(c *Config) { c.AMQPAddr = ":5672" }, ""},
		{"IPv6", func(c *Config) { c.AMQPAddr = "[::1]:5672" }, ""},
		{"no HTTP", func(c *Config) { c.HTTPAddr = "" }, ""},
		{"port too high", func(c *Config) { c.AMQPAddr = ":65536" }, "from 0 to 65535"},
		{"no AMQP at all", func(c *Config) { c.AMQPAddr = "" }, "no client could connect"},
		{"TLS alone", func(c *Config) {
			c.AMQPAddr, c.AMQPSAddr, c.TLSCert, c.TLSKey = "", ":5671", "c.pem", "k.pem"
		}, ""},
		{"no heartbeat", func(c *Config) { c.Heartbeat = 0 }, ""},
		{"heartbeat of half a second", func(c *Config) { c.Heartbeat = time.Second / 2 }, "whole seconds"},
		{"small frames", func(c *Config) { c.FrameMax = 1024 }, "frame-max: is 1024, must be at least 4096"},
		{"huge bodies", func(c *Config) { c.MaxMessageSize = 1 << 40 }, "must be at most 536870912"},
		{"half of TLS", func(c *Config) { c.TLSKey = "k.pem" }, "set together"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := Default()
			tt.edit(&c)
			err := c.Validate()
			if tt.want == "" && err != nil {
				t.Errorf("Validate() = %v, want nil", err)
			}
			if tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Validate() = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestJSONMasksSecretsAndIsAFile(t *testing.T) {
	t.Parallel()
	c := Default()
	c.DefaultPass = "open sesame"
	text, err := c.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "sesame") {
		t.Errorf("JSON() shows the password:\n%s", text)
	}
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	var names []string
	for k := range keys {
		names = append(names, k)
	}
	file, err := ParseFile("printed", text, names)
	if err != nil {
		t.Fatal(err)
	}
	got := []any{file["amqp-addr"], file["stop-timeout"], file["default-pass"]}
	if diff := cmp.Diff([]any{"127.0.0.1:5672", "10s", "********"}, got); diff != "" {
		t.Errorf("printed configuration, -want +got:\n%s", diff)
	}
}

func TestParseFile(t *testing.T) {
	t.Parallel()
	allowed := []string{"amqp-addr", "data-dir", "n", "on"}
	for _, tt := range []struct {
		name, text string
		want       File
		wantErr    []string
	}{
		{name: "all kinds", text: `{"data-dir":"/d","n":5000000,"on":true}`,
			want: File{"data-dir": "/d", "n": "5000000", "on": "true"}},
		{name: "empty object", text: `{}`, want: File{}},
		{name: "unknown keys", text: `{"amqp-adr":":1","data_dir":"/d"}`,
			wantErr: []string{`f.json: unknown setting "amqp-adr"`, `unknown setting "data_dir"`,
				"allowed are: amqp-addr, data-dir, n, on"}},
		{name: "wrong kind", text: `{"n":[1]}`, wantErr: []string{`setting "n" is a list`}},
		{name: "not JSON", text: "{\n \"n\": 1,\n oops\n}", wantErr: []string{"f.json: line 3"}},
		{name: "not an object", text: `"x"`, wantErr: []string{"f.json: line 1"}},
		{name: "two objects", text: "{}\n{}", wantErr: []string{"text after the object"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseFile("f.json", []byte(tt.text), allowed)
			for _, want := range tt.wantErr {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error = %v, want one with %q", err, want)
				}
			}
			if tt.wantErr == nil && err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
