package broker

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/duepost/duepost/internal/amqp"
)

func (r *rig) setLimits(l VHostLimits) {
	r.t.Helper()
	if err := r.vhost.SetLimits(l); err != nil {
		r.t.Fatal(err)
	}
}

func TestLimitOfQueues(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.setLimits(VHostLimits{MaxQueues: 2})
	r.queue("a", nil)
	r.queue("b", nil, "exclusive")
	_, err := r.QueueDeclare(QueueSpec{Name: "c"})
	wantError(t, err, amqp.PreconditionFailed, "cannot declare queue 'c': queue limit in vhost '/' (2) is reached")
	r.queue("a", nil) // is there
	if _, err := r.QueueDelete("b", false, false); err != nil {
		t.Fatal(err)
	}
	r.queue("c", nil)
	_, err = r.vhost.Declare(&Declarations{Queues: []QueueSpec{{Name: "d"}}})
	wantError(t, err, amqp.PreconditionFailed, "queue limit")
	r.setLimits(VHostLimits{MaxQueues: -1})
	r.queue("d", nil)
}

func TestLimitOfConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.setLimits(VHostLimits{MaxConnections: 2}) // the rig has one
	s := r.connect("guest")
	_, err := r.Connect("/", "guest", nil)
	wantError(t, err, amqp.NotAllowed, "access to vhost '/' refused for user 'guest': connection limit (2) is reached")
	s.Close()
	s.Close()
	s = r.connect("guest")
	if _, err := r.Connect("/", "guest", nil); err == nil {
		t.Error("a session closed twice counts twice")
	}
	r.setLimits(VHostLimits{MaxConnections: 0})
	s.Close()
	_, err = r.Connect("/", "guest", nil)
	wantError(t, err, amqp.NotAllowed, "connection limit (0) is reached")
	r.setLimits(nil)
	r.connect("guest").Close()
}

func TestLimitsAndGlobalParametersSurviveUntilDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	limits := VHostLimits{MaxQueues: 7, MaxConnections: -1}
	global := GlobalParameter{"cluster_name", []byte(`"rabbit"`)}
	want := func(l VHostLimits, g ...GlobalParameter) {
		t.Helper()
		if diff := cmp.Diff(l, r.vhost.Limits(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("limits (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(g, r.GlobalParameters(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("global parameters (-want +got):\n%s", diff)
		}
	}
	r.setLimits(VHostLimits{MaxQueues: 6})
	r.setLimits(limits)
	for _, p := range []GlobalParameter{{"cluster_name", []byte("1")}, global} {
		if err := r.SetGlobalParameter(p); err != nil {
			t.Fatal(err)
		}
	}
	want(limits, global)
	r.crash()
	want(limits, global)
	wantError(t, r.vhost.SetLimits(VHostLimits{"max-fun": 1}), amqp.PreconditionFailed, "no limit 'max-fun'")
	r.setLimits(nil)
	for _, wanted := range []bool{true, false} {
		if existed, err := r.DeleteGlobalParameter("cluster_name"); existed != wanted || err != nil {
			t.Errorf("delete: existed %t, %v, want %t", existed, err, wanted)
		}
	}
	want(nil)
	r.crash()
	want(nil)
}
