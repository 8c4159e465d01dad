//go:build relay

package relay

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/testbroker"
)

// process is a relay in a process of its own.
type process struct {
	cmd *exec.Cmd
}

// startProcess starts one and waits until it works.
func startProcess(t *testing.T, program, url string) *process {
	t.Helper()
	cmd := exec.Command(program, "relay", "--rabbitmq", url, "--management", "none")
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd}
	t.Cleanup(p.kill)
	ready := make(chan bool, 1)
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if strings.Contains(lines.Text(), "relay at work") {
				ready <- true
				break
			}
		}
		io.Copy(io.Discard, out) // until the process ends
	}()
	select {
	case <-ready:
	case <-time.After(patience):
		t.Fatal("the relay does not begin")
	}
	return p
}

// kill is kill -9. Doing it again changes nothing.
func (p *process) kill() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// TestKilledRelays: two relays, killed in turn six times while messages of 1 to 15 s arrive and are
// released. Nothing is lost and nothing early; duplicates are what was on its way.
func TestKilledRelays(t *testing.T) {
	t.Parallel()
	program, err := testbroker.BuildDuepost(t.Context(), "", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	onEach(t, func(t *testing.T, b *testbroker.Broker) {
		relays := [2]*process{startProcess(t, program, b.URL()), startProcess(t, program, b.URL())}
		c := newClient(t, b.URL())
		const n = 6000
		published := make(chan struct{})
		go func() {
			defer close(published)
			for i := range 12 {
				c.burst(n*i/12, n/12, time.Second, 15*time.Second)
				<-time.After(500 * time.Millisecond)
			}
		}()
		for i := range 6 {
			<-time.After(1500 * time.Millisecond)
			relays[i%2].kill()
			relays[i%2] = startProcess(t, program, b.URL())
		}
		<-published
		sum := collect(t, b.URL(), 0, n, patience)
		t.Logf("%+v", sum)
		if sum.missing > 0 || sum.early > 0 || sum.twice > n/10 {
			t.Errorf("%+v, want none missing, none early, and few twice", sum)
		}
	})
}
