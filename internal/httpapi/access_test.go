package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/auth"
)

func TestWhoMayUseTheAPI(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(200, `{"name":"guest","tags":["administrator"]}`, "GET", "whoami", "")
	f.as("nobody").want(401, `{"error":"not_authorized","reason":"Login failed"}`, "GET", "whoami", "")
	f.as(auth.Impersonator).want(401, `{"error":"not_authorised","reason":"Not management user"}`, "GET", "whoami", "")
	w := f.as("nobody").do("GET", "whoami", "")
	if got := w.Header().Get("WWW-Authenticate"); got != `Basic realm="Duepost Management"` {
		t.Errorf("WWW-Authenticate = %q", got)
	}
	r := httptest.NewRequest("GET", "/api/whoami", nil)
	w = httptest.NewRecorder()
	if f.ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
		t.Errorf("without credentials: %d, want 401", w.Code)
	}
	f.want(405, `"method_not_allowed"`, "POST", "vhosts", "")
	f.want(404, `"Object Not Found"`, "GET", "nothing", "")
	f.want(200, "[", "GET", "users/", "")
	for from, want := range map[string]int{"127.0.0.1:9": 200, "[::1]:9": 200, "192.0.2.7:9": 401, "nonsense": 401} {
		r.SetBasicAuth("guest", "guest")
		r.RemoteAddr = from
		w = httptest.NewRecorder()
		if f.ServeHTTP(w, r); w.Code != want {
			t.Errorf("guest from %s: %d, want %d", from, w.Code, want)
		}
	}
	f.parts = func() *Parts { return nil }
	f.want(503, `"unavailable"`, "GET", "whoami", "")
}

// What a tag opens is RabbitMQ's.
func TestTagsOpenWhatRabbitMQOpens(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, tt := range []struct {
		method, path, body               string
		management, policies, monitoring int // codes
	}{
		{"GET", "users", "", 401, 401, 401},
		{"PUT", "vhosts/v", "", 401, 401, 401},
		{"GET", "permissions", "", 401, 401, 401},
		{"GET", "definitions", "", 401, 401, 401},
		{"GET", "nodes", "", 401, 401, 200},
		{"GET", "overview", "", 200, 200, 200},
		{"GET", "vhosts/%2F", "", 401, 401, 200},
		{"GET", "queues/%2F", "", 401, 401, 200},
		{"PUT", "queues/%2F/q", "", 401, 401, 401},
		{"GET", "parameters", "", 401, 200, 401},
		{"PUT", "policies/%2F/p", `{"pattern":"","definition":{"max-length":1}}`, 401, 401, 401},
		{"PUT", "operator-policies/%2F/p", `{"pattern":"","definition":{"max-length":1}}`, 401, 401, 401},
	} {
		for user, want := range map[string]int{
			auth.Management: tt.management, auth.Policymaker: tt.policies, auth.Monitoring: tt.monitoring,
		} {
			w := f.as(user).do(tt.method, tt.path, tt.body)
			if w.Code != want || want == 401 && !strings.Contains(w.Body.String(), `"not_authorised"`) {
				t.Errorf("%s by %s = %d %s, want %d", tt.path, user, w.Code, w.Body, want)
			}
		}
	}
	if got := names(get[[]map[string]any](f.as(auth.Monitoring), "vhosts"), "name"); got != "/" {
		t.Errorf("monitoring sees the virtual hosts %q, want /", got)
	}
	if got := names(get[[]map[string]any](f.as(auth.Management), "vhosts"), "name"); got != "" {
		t.Errorf("management sees the virtual hosts %q, want none", got)
	}
	// With a permission in the virtual host.
	for _, user := range []string{auth.Management, auth.Policymaker} {
		f.want(201, "", "PUT", "permissions/%2F/"+user, `{"configure":"^c","write":"","read":""}`)
	}
	f.as(auth.Management).want(200, "[]", "GET", "queues/%2F", "")
	f.as(auth.Management).want(201, "", "PUT", "queues/%2F/c", "")
	f.as(auth.Management).want(401, "Access refused.", "PUT", "queues/%2F/q", "")
	f.as(auth.Management).want(401, "User not authorised to access object", "PUT", "policies/%2F/p", `{"pattern":"","definition":{"max-length":1}}`)
	f.as(auth.Policymaker).want(201, "", "PUT", "policies/%2F/p", `{"pattern":"","definition":{"max-length":1}}`)
}

func TestUsers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(400, "tags_not_present", "PUT", "users/u", `{"password":"p"}`)
	f.want(400, "not_json", "PUT", "users/u", `{"password":"p"`)
	f.want(400, "not_json", "PUT", "users/u", `[1]`)
	f.want(400, "both_password_and_password_hash_are_provided", "PUT", "users/u", `{"password":"p","password_hash":"","tags":""}`)
	f.want(400, "illegal base64", "PUT", "users/u", `{"password_hash":"%%","tags":""}`)
	f.want(400, "unknown algorithm", "PUT", "users/u", `{"password_hash":"","hashing_algorithm":"rot13","tags":""}`)
	f.want(400, "tags must be", "PUT", "users/u", `{"password":"u","tags":5}`)
	f.want(404, "Object Not Found", "GET", "users/u", "")
	f.want(201, "", "PUT", "users/u", `{"password":"u","tags":"management, night shift"}`)
	f.want(204, "", "PUT", "users/u", `{"password":"u","tags":["management","night shift"]}`)
	f.as("u").want(200, `{"name":"u","tags":["management","night shift"]}`, "GET", "whoami", "")
	f.want(200, `"hashing_algorithm":"rabbit_password_hashing_sha256"`, "GET", "users/u", "")
	f.want(201, "", "PUT", "users/old", `{"password_hash":"kI3GCmUrs/OCFm0BAXlvOUtAdYk=","hashing_algorithm":"rabbit_password_hashing_md5","tags":""}`)
	if got := names(get[[]map[string]any](f, "users?sort=name"), "name"); got != "guest,impersonator,management,monitoring,old,policymaker,u" {
		t.Errorf("users are %s", got)
	}
	if got := names(get[[]map[string]any](f, "users/without-permissions"), "name"); got != "impersonator,management,monitoring,old,policymaker,u" {
		t.Errorf("users without permissions are %s", got)
	}
	f.want(400, "no_such_user", "POST", "users/bulk-delete", `{"users":["old","none"]}`)
	f.want(204, "", "POST", "users/bulk-delete", `{"users":["old"]}`)
	f.want(404, "Object Not Found", "DELETE", "users/old", "")
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(400, "vhost_or_user_not_found", "PUT", "permissions/nope/management", `{"configure":"","write":"","read":""}`)
	f.want(400, "vhost_or_user_not_found", "PUT", "permissions/%2F/nobody", `{"configure":"","write":"","read":""}`)
	f.want(400, "[{key_missing,write},{key_missing,read}]", "PUT", "permissions/%2F/management", `{"configure":""}`)
	f.want(400, "[{key_missing,read}]", "PUT", "permissions/%2F/management", `{"configure":"","write":""}`)
	f.want(400, "configure: invalid regular expression '('", "PUT", "permissions/%2F/management", `{"configure":"(","write":"","read":""}`)
	f.want(404, "Object Not Found", "GET", "permissions/%2F/management", "")
	f.want(201, "", "PUT", "permissions/%2F/management", `{"configure":"a","write":"b","read":"c"}`)
	f.want(204, "", "PUT", "permissions/%2F/management", `{"configure":"a","write":"b","read":"c"}`)
	const p = `{"configure":"a","read":"c","user":"management","vhost":"/","write":"b"}`
	f.want(200, p, "GET", "permissions/%2F/management", "")
	f.want(200, "["+p+"]", "GET", "users/management/permissions", "")
	f.want(200, p, "GET", "vhosts/%2F/permissions", "")
	f.want(200, p, "GET", "permissions", "")
	f.want(204, "", "DELETE", "permissions/%2F/management", "")
	f.want(404, "Object Not Found", "DELETE", "permissions/%2F/management", "")

	f.want(201, "", "PUT", "topic-permissions/%2F/management", `{"exchange":"amq.topic","write":"^a","read":""}`)
	f.want(204, "", "PUT", "topic-permissions/%2F/management", `{"exchange":"t","write":"^b","read":""}`)
	f.want(400, "read: invalid regular expression", "PUT", "topic-permissions/%2F/management", `{"exchange":"t","write":"","read":"["}`)
	const topic = `{"exchange":"amq.topic","read":"","user":"management","vhost":"/","write":"^a"}`
	for _, path := range []string{"topic-permissions/%2F/management", "topic-permissions",
		"users/management/topic-permissions", "vhosts/%2F/topic-permissions"} {
		f.want(200, "["+topic, "GET", path, "")
	}
	f.want(204, "", "DELETE", "topic-permissions/%2F/management/t", "")
	f.want(200, "["+topic+"]", "GET", "topic-permissions", "")
	f.want(204, "", "DELETE", "topic-permissions/%2F/management", "")
	f.want(404, "Object Not Found", "GET", "topic-permissions/%2F/management", "")
	f.want(404, "Object Not Found", "GET", "users/nobody/permissions", "")
	f.want(404, "Object Not Found", "GET", "vhosts/nope/permissions", "")
}

func TestVHosts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "", "PUT", "vhosts/a%2Fb", `{"description":"d","tags":"x,y","default_queue_type":"quorum"}`)
	f.want(200, `"default_queue_type":"quorum","description":"d","messages":0`, "GET", "vhosts/a%2Fb", "")
	f.want(200, `"tags":["x","y"]`, "GET", "vhosts/a%2Fb", "")
	f.want(200, `{"configure":".*","read":".*","user":"guest","vhost":"a/b","write":".*"}`, "GET", "vhosts/a%2Fb/permissions", "")
	f.want(400, "invalid default_queue_type", "PUT", "vhosts/a%2Fb", `{"default_queue_type":"nonsense"}`)
	f.want(204, "", "PUT", "vhosts/a%2Fb", "")
	f.want(200, `"description":"","messages":0`, "GET", "vhosts/a%2Fb", "")
	if got := names(get[[]map[string]any](f, "vhosts"), "name"); got != "/,a/b" {
		t.Errorf("virtual hosts are %s", got)
	}
	f.want(204, "", "DELETE", "vhosts/a%2Fb", "")
	f.want(404, "Object Not Found", "DELETE", "vhosts/a%2Fb", "")
	f.want(404, "Object Not Found", "GET", "vhosts/a%2Fb", "")
}

// wantClosed waits for the server to close a connection.
func wantClosed(t *testing.T, closed <-chan *amqp.Error, reason string) {
	t.Helper()
	select {
	case err := <-closed:
		if err == nil || err.Code != amqp.ConnectionForced || err.Reason != "CONNECTION_FORCED - "+reason {
			t.Errorf("closed with %v, want 320 %s", err, reason)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("not closed: %s", reason)
	}
}

func TestDeletedVHostClosesConnectionsAndLeavesNoRights(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "", "PUT", "vhosts/v", "")
	f.want(201, "", "PUT", "permissions/v/management", `{"configure":"","write":"","read":""}`)
	closed := f.connect("management", "v").NotifyClose(make(chan *amqp.Error, 1))
	stays := f.connect("guest", "/")
	f.want(204, "", "DELETE", "vhosts/v", "")
	wantClosed(t, closed, "vhost 'v' is deleted")
	if ch, err := stays.Channel(); err != nil {
		t.Errorf("a connection to another virtual host: %v", err)
	} else {
		ch.Close()
	}
	f.want(404, "Object Not Found", "GET", "permissions/v/management", "")
	f.want(201, "", "PUT", "vhosts/v", "")
	f.want(404, "Object Not Found", "GET", "permissions/v/management", "")
}

func TestDeletedUserLosesItsConnections(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.want(201, "", "PUT", "permissions/%2F/management", `{"configure":"","write":"","read":""}`)
	closed := f.connect("management", "/").NotifyClose(make(chan *amqp.Error, 1))
	f.want(204, "", "DELETE", "users/management", "")
	wantClosed(t, closed, "user 'management' is deleted")
	_, err := amqp.Dial("amqp://management:management@" + f.addr + "/")
	if err == nil {
		t.Error("a deleted user is let in")
	}
}
