package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/duepost/duepost/internal/management"
)

// definitionsCmd exports and imports definitions.
type definitionsCmd struct {
	apiFlags
	VHost string `name:"vhost" short:"p" placeholder:"NAME" help:"Of this virtual host only, without users and permissions. Default: everything."`

	Export definitionsExportCmd `cmd:"" help:"Write users, virtual hosts, permissions, policies, exchanges, queues and bindings as RabbitMQ's JSON."`
	Import definitionsImportCmd `cmd:"" help:"Bring in such a file: all of it, or nothing where something in it is wrong."`
}

func (c *definitionsCmd) path() string {
	if c.VHost == "" {
		return "definitions"
	}
	return management.Path("definitions", c.VHost)
}

type definitionsExportCmd struct {
	File string `arg:"" optional:"" default:"-" help:"Where to; - is standard output."`
}

// Run exports.
func (c *definitionsExportCmd) Run(ctx context.Context, p process, in *definitionsCmd) error {
	text, err := in.ask(ctx, management.Request{Method: http.MethodGet, Path: in.path()})
	if err != nil {
		return fmt.Errorf("export definitions: %w", missing(err, fmt.Sprintf("vhost %q", in.VHost)))
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, bytes.TrimSpace(text), "", "  "); err != nil {
		return fmt.Errorf("export definitions: %w", err)
	}
	indented.WriteByte('\n')
	if c.File == "-" {
		_, err := p.stdout.Write(indented.Bytes())
		return err
	}
	// Password hashes are in it.
	if err := os.WriteFile(c.File, indented.Bytes(), 0o600); err != nil {
		return fmt.Errorf("export definitions: %w", err)
	}
	in.say(p, "exported to %s", c.File)
	return nil
}

type definitionsImportCmd struct {
	File string `arg:"" optional:"" default:"-" help:"Where from; - is standard input."`
}

// Run imports, and tells what the broker says about it.
func (c *definitionsImportCmd) Run(ctx context.Context, p process, in *definitionsCmd) error {
	text, err := c.read(p.stdin)
	if err != nil {
		return fmt.Errorf("import definitions: %w", err)
	}
	answer, err := in.ask(ctx, management.Request{Method: http.MethodPost, Path: in.path(), Body: text})
	if err != nil {
		return fmt.Errorf("import definitions: %w", missing(err, fmt.Sprintf("vhost %q", in.VHost)))
	}
	var said struct{ Notes []string }
	if len(bytes.TrimSpace(answer)) > 0 {
		if err := decodeAnswer(answer, &said); err != nil {
			return err
		}
	}
	for _, note := range said.Notes {
		fmt.Fprintln(p.stderr, note)
	}
	in.say(p, "imported")
	return nil
}

func (c *definitionsImportCmd) read(stdin io.Reader) ([]byte, error) {
	if c.File == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(c.File)
}
