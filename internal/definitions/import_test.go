package definitions

import (
	"crypto/md5"
	"encoding/base64"
	"strings"
	"testing"
)

// The file is what RabbitMQ 3.10.8 exported.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := testFile(t, "rabbitmq-3.10.json")
	want := decodeJSON(t, file)
	want["product_name"], want["product_version"] = "Duepost", "1.2.3"
	for range 2 { // the second time finds everything there
		wantNotes(t, r.importAll(string(file)))
		wantSame(t, want, r.exported())
	}
}

func TestPasswordHashesImportAsTheyAre(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll(`{"rabbit_version":"3.5.7","users":[
		{"name":"sha256","hashing_algorithm":"rabbit_password_hashing_sha256","tags":"",
			"password_hash":"PB/TC4oBskyKK4eSPfWBYob+bFt7tDiBYOtBeFwbmCM6LWgF"},
		{"name":"old","password_hash":"` + hashMD5("guest") + `","tags":"administrator, management"},
		{"name":"plain","password":"s3cret","tags":["a"]},
		{"name":"none","password_hash":"","tags":[]}]}`)
	r.restart()
	for user, password := range map[string]string{"sha256": "guest", "old": "guest", "plain": "s3cret"} {
		if err := r.Users.CheckPassword(user, password, nil); err != nil {
			t.Errorf("%s: %v", user, err)
		}
		if err := r.Users.CheckPassword(user, "other", nil); err == nil {
			t.Errorf("%s may enter with another password", user)
		}
	}
	if err := r.Users.CheckPassword("none", "", nil); err == nil {
		t.Error("a user without a password may enter with none")
	}
	if u, _ := r.Users.User("old"); !u.HasTag("administrator") || !u.HasTag("management") || len(u.Tags) != 2 {
		t.Errorf("got tags %q", u.Tags)
	}
}

// hashMD5 hashes as RabbitMQ did before 3.6.
func hashMD5(password string) string {
	salt := []byte("salt")
	sum := md5.Sum(append(salt, password...))
	return base64.StdEncoding.EncodeToString(append(salt, sum[:]...))
}

func TestVHostsAreMadeWithWhatIsSaidOfThem(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll(`{"vhosts":[
		{"name":"beside","description":"d","tags":["t","u"],"default_queue_type":"quorum","metadata":{}},
		{"name":"within","metadata":{"description":"d","tags":["t"],"default_queue_type":"undefined"}},
		{"name":"bare"},{"name":"/"}]}`)
	// Of beside it says nothing, so that keeps what it has.
	r.importAll(`{"vhosts":[{"name":"beside"},{"name":"bare","metadata":{"description":"later"}}]}`)
	r.restart()
	got := r.exported()
	wantSame(t, decodeJSON(t, []byte(`{"vhosts":[
		{"name":"/"},{"name":"bare","metadata":{"description":"later","tags":[]}},
		{"name":"beside","metadata":{"description":"d","tags":["t","u"],"default_queue_type":"quorum"}},
		{"name":"within","metadata":{"description":"d","tags":["t"]}}]}`)), map[string]any{"vhosts": got["vhosts"]})
}

func TestImportMakesItsOwnVHostsAndUsers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll(`{
		"bindings":[{"source":"amq.direct","vhost":"v","destination":"q","destination_type":"queue","routing_key":"k"}],
		"queues":[{"name":"q","vhost":"v"}],
		"permissions":[{"user":"u","vhost":"v","configure":"","write":".*","read":"^(?!secret)"}],
		"topic_permissions":[{"user":"u","vhost":"v","exchange":"amq.topic","write":"^{username}","read":""}],
		"users":[{"name":"u","tags":""}],
		"vhosts":[{"name":"v"}]}`)
	if got := r.exported(); len(got["bindings"].([]any)) != 1 || len(got["topic_permissions"].([]any)) != 1 {
		t.Errorf("got %v", got)
	}
	if rights := r.Users.Rights("u", "v"); !rights.MayRead("open") || rights.MayRead("secret") || rights.MayConfigure("q") {
		t.Error("the permissions are not those of the file")
	}
}

func TestWhoImportsMayDoEverythingInNewVHosts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll(`{"users":[{"name":"admin","tags":"administrator"}],"vhosts":[{"name":"old"}]}`)
	r.Site.User = "admin"
	r.importAll(`{"vhosts":[{"name":"old"},{"name":"new"},{"name":"said"}],
		"permissions":[{"user":"admin","vhost":"said","configure":"","write":"","read":"only"}]}`)
	for vhost, want := range map[string]bool{"old": false, "new": true, "said": false} {
		if got := r.Users.Rights("admin", vhost).MayConfigure("q"); got != want {
			t.Errorf("%s: may configure %t, want %t", vhost, got, want)
		}
	}
	if !r.Users.Rights("admin", "said").MayRead("only") {
		t.Error("what the file says of the user does not count")
	}
}

func TestQueuesGetTheDefaultTypeOfTheirVHost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range 2 {
		if notes := r.importAll(`{"vhosts":[{"name":"v","default_queue_type":"quorum"}],
			"queues":[{"name":"q","vhost":"v"},{"name":"transient","vhost":"v","durable":false},
				{"name":"own","vhost":"v","arguments":{"x-queue-type":"classic"}}]}`); len(notes) > 0 {
			t.Error(notes)
		}
	}
	for name, want := range map[string]any{"q": "quorum", "transient": nil, "own": "classic"} {
		for _, q := range r.Broker.VHost("v").Declarations().Queues {
			if got := q.Args["x-queue-type"]; q.Name == name && got != want {
				t.Errorf("%s: got type %v, want %v", name, got, want)
			}
		}
	}
}

func TestVHostFileNamesNoOtherVHost(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if _, err := ImportVHost(r.Site, r.vhost(), []byte(`{
		"queues":[{"name":"a"},{"name":"b","vhost":"other"}],
		"users":[{"name":"ignored","tags":""}],"vhosts":[{"name":"ignored"}]}`)); err != nil {
		t.Fatal(err)
	}
	got := r.exported()
	if len(got["queues"].([]any)) != 2 || len(got["users"].([]any)) != 0 || len(got["vhosts"].([]any)) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestVHostRoundTrip(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := testFile(t, "rabbitmq-3.10-vhost.json")
	if _, err := ImportVHost(r.Site, r.vhost(), file); err != nil {
		t.Fatal(err)
	}
	want := decodeJSON(t, []byte(strings.ReplaceAll(string(file), `"orders"`, `"/"`)))
	wantSame(t, want, r.exportedVHost())
	r.restart()
	wantSame(t, want, r.exportedVHost())
}

func TestDelayedExchangeOfThePluginImportsAsItIs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll(`{"rabbit_version":"3.10.8",
		"queues":[{"name":"q","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}],
		"exchanges":[{"name":"later","vhost":"/","type":"x-delayed-message","durable":true,"auto_delete":false,
			"internal":false,"arguments":{"x-delayed-type":"topic"}}],
		"bindings":[{"source":"later","vhost":"/","destination":"q","destination_type":"queue",
			"routing_key":"a.#","arguments":{}}]}`)
	exchanges := r.exported()["exchanges"].([]any)
	if len(exchanges) != 1 || exchanges[0].(map[string]any)["type"] != "x-delayed-message" {
		t.Errorf("got exchanges %v", exchanges)
	}
}

// TestWhatVersionsWriteDifferently has forms that RabbitMQ exports or accepts here and there.
func TestWhatVersionsWriteDifferently(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll("\xef\xbb\xbf" + `{
		"rabbitmq_definition_format":"cluster","original_cluster_name":"x","unknown":[1],
		"exchanges":[
			{"name":"undefined","vhost":"/","type":"direct","durable":true,"auto_delete":"undefined"},
			{"name":"short","vhost":"/","type":"fanout","arguments":[]},
			{"name":"","vhost":"/","type":"direct"},
			{"name":"amq.rabbitmq.log","vhost":"/","type":"x-of-a-plugin"}],
		"queues":[{"name":"q","vhost":"/","type":"classic"},{"name":"amq.gen-x","vhost":"/"}],
		"policies":[{"vhost":"/","name":"p","pattern":"x","definition":{"max-length":1}}]}`)
	got := r.exported()
	wantSame(t, decodeJSON(t, []byte(`{
		"exchanges":[
			{"name":"undefined","vhost":"/","type":"direct","durable":true,"auto_delete":false,"internal":false,"arguments":{}},
			{"name":"short","vhost":"/","type":"fanout","durable":true,"auto_delete":false,"internal":false,"arguments":{}}],
		"queues":[
			{"name":"q","vhost":"/","durable":true,"auto_delete":false,"arguments":{}},
			{"name":"amq.gen-x","vhost":"/","durable":true,"auto_delete":false,"arguments":{}}],
		"policies":[{"vhost":"/","name":"p","pattern":"x","apply-to":"all","priority":0,"definition":{"max-length":1}}]}`)),
		map[string]any{"exchanges": got["exchanges"], "queues": got["queues"], "policies": got["policies"]})
}

func TestWhatIsThereStaysAndTheDifferenceIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll(`{"queues":[{"name":"q","vhost":"/","arguments":{"x-max-length":5}}]}`)
	before := r.exported()
	notes := r.importAll(`{"queues":[{"name":"q","vhost":"/","arguments":{"x-max-length":6}}]}`)
	wantNotes(t, notes, "'x-max-length' for queue 'q'")
	wantSame(t, before, r.exported())
}

func TestLimitsOfUsers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll(`{"users":[{"name":"a","tags":"","limits":{"max-channels":5}},{"name":"b","tags":"","limits":[]}]}`)
	r.restart()
	got := map[string]any{}
	for _, u := range r.exported()["users"].([]any) {
		user := u.(map[string]any)
		got[user["name"].(string)] = user["limits"]
	}
	wantSame(t, decodeJSON(t, []byte(`{"a":{"max-channels":5},"b":{}}`)), got)
}

// Policies and parameters are set, whatever was there.
func TestPoliciesAndParametersAreReplaced(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	file := `{"policies":[{"vhost":"/","name":"p","pattern":"x","definition":{"max-length":N}}],
		"parameters":[
			{"component":"operator_policy","vhost":"/","name":"p","value":{"pattern":"x","definition":{"max-length":N}}},
			{"component":"vhost-limits","vhost":"/","name":"limits","value":{"max-queues":N}}],
		"global_parameters":[{"name":"n","value":N}]}`
	r.importAll(strings.ReplaceAll(file, "N", "1"))
	first := asText(t, r.exported())
	r.importAll(strings.ReplaceAll(file, "N", "2"))
	want := strings.NewReplacer(`"max-length":1`, `"max-length":2`, `"max-queues":1`, `"max-queues":2`,
		`"value":1}`, `"value":2}`).Replace(first)
	if got := asText(t, r.exported()); got != want || got == first {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestArgumentsKeepTheirTypes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	arguments := `{"b":true,"f":1.5,"i":9007199254740993,"l":[1,"x",null,{"d":-0.25}],"s":"ä\n","t":{"u":{}},"n":null,"e":[]}`
	r.importAll(`{"queues":[{"name":"q","vhost":"/","arguments":` + arguments + `}]}`)
	r.restart()
	d, err := Export(r.Site)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.Queues[0].Arguments.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"b":true,"e":[],"f":1.5,"i":9007199254740993,"l":[1,"x",null,{"d":-0.25}],"n":null,"s":"ä\n","t":{"u":{}}}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestImportOfNothingDoesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	before := r.exported()
	r.importAll("{}")
	wantSame(t, before, r.exported())
	r.restart()
	if r.hadUsers {
		t.Error("who looks for users takes it that there were some")
	}
}
