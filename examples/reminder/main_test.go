package main

import (
	"bytes"
	"testing"
)

func TestReminders(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), "", &out); err != nil {
		t.Fatal(err)
	}
	if want := "1 h later: dentist in an hour\n2 h later: lunch in an hour\n"; out.String() != want {
		t.Errorf("it says:\n%swant:\n%s", &out, want)
	}
}
