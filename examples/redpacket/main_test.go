package main

import (
	"bytes"
	"testing"
)

func TestRedPackets(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), "", &out); err != nil {
		t.Fatal(err)
	}
	const want = `a friend opens packet 1 and finds 300
friends open packet 2 and find 600 and 400
after 24 hours 700 go back
`
	if out.String() != want {
		t.Errorf("it says:\n%swant:\n%s", &out, want)
	}
}
