package definitions

import (
	"strings"
	"testing"
)

func TestFileThatIsNoJSONIsRefusedWithLineAndColumn(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.wantFaults("{\n  \"queues\": [}", "$: is not JSON: line 2, column 14: invalid character '}'")
	r.wantFaults("{", "$: is not JSON: line 1, column 1: unexpected end of JSON input")
	r.wantFaults("", "$: is not JSON: line 1, column 1: unexpected end of JSON input")
	r.wantFaults("{} {}", "$: is not JSON: line 1, column 4: invalid character '{' after top-level value")
	r.wantFaults("[]", "$: is a list, must be an object")
	r.wantFaults("null", "$: is null, must be an object")
}

func TestHalfWrongFileIsRefusedWithAllFaultsAndTheirPlaces(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.importAll(`{"queues":[{"name":"there","vhost":"/"}]}`)
	r.wantFaults(`{
		"queues": [
			{"name":"good","vhost":"/","durable":true,"auto_delete":false,"arguments":{}},
			{"name":"a","vhost":"/","arguments":{"x-message-ttl":"x","x-max-length":-1,"other":"kept"}},
			{"name":"b","vhost":"gone"},
			{"vhost":"/","durable":"yes"},
			{"name":"q","vhost":"/","durable":false,"arguments":{"x-queue-type":"quorum"}},
			{"name":"s","vhost":"/","arguments":{"x-queue-type":"stream"}},
			{"name":"big","vhost":"/","arguments":{"n":99999999999999999999}},
			{"name":""},
			5
		],
		"exchanges": [
			{"name":"x","vhost":"/","type":"none"},
			{"name":"d","vhost":"/","type":"x-delayed-message","arguments":{"x-delayed-type":"x-delayed-message"}},
			{"name":"h","vhost":"/","type":"headers","arguments":{"alternate-exchange":5}},
			{"name":"good","vhost":"/","type":"direct"}
		],
		"bindings": [
			{"source":"good","vhost":"/","destination":"good","destination_type":"queue","routing_key":""},
			{"source":"none","vhost":"/","destination":"there","destination_type":"queue","routing_key":""},
			{"source":"good","vhost":"/","destination":"none","destination_type":"queue","routing_key":""},
			{"source":"good","vhost":"/","destination":"there","destination_type":"exchange","routing_key":""},
			{"source":"good","vhost":"/","destination":"there","destination_type":"topic","routing_key":""},
			{"source":"h","vhost":"/","destination":"there","destination_type":"queue","routing_key":"",
				"arguments":{"x-match":"some"}}
		],
		"policies": [
			{"vhost":"/","name":"p","pattern":"(","apply-to":"some","definition":{"expires":0,"max-length":"s"}},
			{"vhost":"/","name":"none","pattern":"x"},
			{"vhost":"/","name":"good","pattern":"x","definition":{"max-length":1}}
		],
		"parameters": [
			{"component":"operator_policy","vhost":"/","name":"op","value":{"pattern":"x","definition":{"queue-mode":"lazy"}}},
			{"component":"policy","vhost":"/","name":"p","value":{}},
			{"component":"shovel","vhost":"/","name":"s","value":{}},
			{"component":"vhost-limits","vhost":"/","name":"limits","value":{"max-queues":"5","max-fun":1}}
		]
	}`,
		`$.queues[1].arguments.x-message-ttl: invalid arg 'x-message-ttl' for queue 'a' in vhost '/': "expected integer`,
		`$.queues[1].arguments.x-max-length: invalid arg 'x-max-length' for queue 'a' in vhost '/': {value_negative,-1}`,
		`$.queues[2].vhost: no such virtual host 'gone'`,
		`$.queues[3]: has no name`,
		`$.queues[3].durable: is a text, must be true or false`,
		`$.queues[4]: invalid property 'non-durable' for queue 'q' in vhost '/'`,
		`$.queues[5]: queue 's' in vhost '/': streams are not supported`,
		`$.queues[6].arguments.n: 99999999999999999999 does not fit 64 bits`,
		`$.queues[7].name: is empty`,
		`$.queues[7]: has no vhost`,
		`$.queues[8]: is a number, must be an object`,
		`$.exchanges[0].type: unknown exchange type 'none'`,
		`$.exchanges[1].arguments.x-delayed-type: invalid arg 'x-delayed-type'`,
		`$.exchanges[2].arguments.alternate-exchange: invalid type`,
		`$.bindings[1].source: no exchange 'none' in vhost '/'`,
		`$.bindings[2].destination: no queue 'none' in vhost '/'`,
		`$.bindings[3].destination: no exchange 'there' in vhost '/'`,
		`$.bindings[4].destination_type: is 'topic', must be 'queue' or 'exchange'`,
		`$.bindings[5].arguments: Invalid x-match field value`,
		`$.policies[0].pattern: pattern should be regular expression`,
		`$.policies[0].apply-to: apply-to 'some' unrecognised`,
		`$.policies[0].definition.expires: 0 is not a valid queue expiry`,
		`$.policies[0].definition.max-length: <<"s">> is not a valid maximum length`,
		`$.policies[1]: has no definition`,
		`$.parameters[0].value.definition: [{<<"queue-mode">>,<<"lazy">>}] are not recognised policy settings`,
		`$.parameters[1]: policies may not be set using this method`,
		`$.parameters[2].component: component shovel not found`,
		`$.parameters[3].value.max-queues: is a text, must be an integer`,
		`$.parameters[3].value.max-fun: is not a limit of a virtual host`,
	)
}

func TestMoreQueuesThanTheLimitAreAFault(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const limits = `"parameters":[{"component":"vhost-limits","vhost":"/","name":"limits","value":{"max-queues":2}}]`
	const want = "$.queues: virtual host '/' would have 3 queues, its limit is 2"
	r.wantFaults(`{"queues":[{"name":"a","vhost":"/"},{"name":"b","vhost":"/"},{"name":"c","vhost":"/"}],`+limits+`}`, want)
	r.importAll(`{"queues":[{"name":"a","vhost":"/"},{"name":"b","vhost":"/"}],` + limits + `}`)
	r.wantFaults(`{"queues":[{"name":"c","vhost":"/"}]}`, want)
	r.importAll(`{"queues":[{"name":"b","vhost":"/"}]}`)
}

func TestFaultsOfUsersAndPermissions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.wantFaults(`{
		"users":[
			{"name":"good","tags":[]},
			{"name":"a"},
			{"name":"b","tags":"","password_hash":"%%%"},
			{"name":"c","tags":"","password_hash":"","hashing_algorithm":"none"},
			{"name":"d","tags":[1]},
			{"name":"e","tags":"","limits":5}],
		"vhosts":[{"name":"v","default_queue_type":"stream"},{"name":5},{"name":"w"}],
		"permissions":[
			{"user":"gone","vhost":"/","configure":"","write":"","read":""},
			{"user":"good","vhost":"gone","configure":"(","write":"","read":"["},
			{"user":"good","vhost":"w","configure":""}],
		"topic_permissions":[{"user":"good","vhost":"w","exchange":"amq.topic","write":"(","read":""}]
	}`,
		"$.users[1]: has no tags",
		"$.users[2].password_hash: parse password hash: illegal base64",
		"$.users[3].password_hash: parse password hash: unknown algorithm",
		"$.users[4].tags[0]: is a number, must be a text",
		"$.users[5].limits: is a number, must be an object",
		"$.vhosts[0]: invalid default_queue_type 'stream'",
		"$.vhosts[1].name: is a number, must be a text",
		"$.permissions[0].user: no such user 'gone'",
		"$.permissions[1].vhost: no such virtual host 'gone'",
		"$.permissions[1].configure: is no regular expression: missing closing )",
		"$.permissions[1].read: is no regular expression: ",
		"$.permissions[2]: has no write",
		"$.permissions[2]: has no read",
		"$.topic_permissions[0].write: is no regular expression: missing closing )",
	)
}

func TestFaultsOfForm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	long := strings.Repeat("n", 256)
	r.wantFaults(`{"queues":{"name":"a"},"users":5}`,
		"$.queues: is an object, must be a list", "$.users: is a number, must be a list")
	r.wantFaults(`{"queues":[{"name":"`+long+`","vhost":"/"}]}`, "$.queues[0].name: has 256 bytes, 255 are allowed")
	r.wantFaults(`{"queues":[{"name":5,"vhost":"/","arguments":[1]}]}`,
		"$.queues[0].name: is a number, must be a text", "$.queues[0].arguments: is a list, must be an object")
	r.wantFaults(`{"queues":[{"name":"q","vhost":"/","arguments":{"`+long+`":1}}]}`, "$.queues[0].arguments: key nnnn")
	r.wantFaults(`{"policies":[{"vhost":"/","name":"p","pattern":"x","priority":"1","definition":5}]}`,
		"$.policies[0].priority: is a text, must be a number", "$.policies[0].definition: is a number, must be an object")
	r.wantFaults(`{"global_parameters":[{"value":1}]}`, "$.global_parameters[0]: has no name")
	r.wantFaults(`{"queues":[{"name":"q","vhost":"/","arguments":{"a key":{"in":99999999999999999999}}}]}`,
		`$.queues[0].arguments["a key"].in: 99999999999999999999 does not fit`)
}

func TestFaultsSayHowMany(t *testing.T) {
	t.Parallel()
	one := Faults{{"$.a", "is bad"}}
	if got, want := one.Error(), "import definitions: 1 fault, nothing is imported\n$.a: is bad"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	two := append(one, Fault{"$.b", "is bad"})
	if got := two.Error(); !strings.HasPrefix(got, "import definitions: 2 faults") || !strings.HasSuffix(got, "\n$.b: is bad") {
		t.Errorf("got %q", got)
	}
}
