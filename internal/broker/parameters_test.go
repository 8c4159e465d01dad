package broker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParametersSurviveUntilDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	a, b := Parameter{"c", "a", []byte(`{"x":1}`)}, Parameter{"c", "b", []byte("2")}
	g := Parameter{Name: "cluster_name", Value: []byte(`"rabbit"`)}
	for _, p := range []Parameter{b, {"c", "a", []byte("1")}, a} {
		if err := r.vhost.SetParameter(p); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.SetGlobalParameter(g); err != nil {
		t.Fatal(err)
	}
	want := func(own, global []Parameter) {
		t.Helper()
		if diff := cmp.Diff(own, r.vhost.Parameters(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("of the virtual host (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(global, r.GlobalParameters(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("global (-want +got):\n%s", diff)
		}
	}
	want([]Parameter{a, b}, []Parameter{g})
	r.crash()
	want([]Parameter{a, b}, []Parameter{g})
	for _, wanted := range []bool{true, false} {
		if existed, err := r.vhost.DeleteParameter("c", "a"); existed != wanted || err != nil {
			t.Errorf("delete: existed %t, %v, want %t", existed, err, wanted)
		}
		if existed, err := r.DeleteGlobalParameter("cluster_name"); existed != wanted || err != nil {
			t.Errorf("delete global: existed %t, %v, want %t", existed, err, wanted)
		}
	}
	r.crash()
	want([]Parameter{b}, nil)
}
