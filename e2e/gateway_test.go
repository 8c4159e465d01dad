//go:build gateway

package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"testing"
	"time"

	"github.com/duepost/duepost/internal/requirement"
	"github.com/duepost/duepost/internal/testbroker"
)

// TestThroughTheGateway plays every scheme of every language on RabbitMQ, the
// newest that is installed, through the gateway of a relay.
func TestThroughTheGateway(t *testing.T) {
	t.Parallel()
	noteSources(t)
	if os.Getenv(urlVariable) != "" {
		t.Skipf("needs a broker of its own, and %s names one that runs", urlVariable)
	}
	all, err := testbroker.InstalledRabbitMQs()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		requirement.Missing(t, "RabbitMQ", "Debian package rabbitmq-server")
	}
	b, err := all[len(all)-1].Start(t.Context(), testbroker.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Kill(); err != nil {
			t.Error(err)
		}
	})
	t.Log(b.Name)
	faults := rabbitFaults()
	// What waits for an exchange is parked when the exchange is gone, and goes to another one that has
	// its name by then.
	faults["delayed-bindings"] = "a deleted exchange's message came back"
	url := "amqp://guest:guest@" + startGateway(t, b.URL())
	for _, l := range []struct {
		name string
		make func(*testing.T) program
	}{
		{"Go", goProgram}, {"Java", javaProgram}, {"Node", nodeProgram}, {"PHP", phpProgram}, {"Python", pythonProgram},
	} {
		// One language after the other: RabbitMQ has two cores like everybody.
		t.Run(l.name, func(t *testing.T) { playOn(t, l.make(t), url, true, faults) })
	}
}

var gatewayListens = regexp.MustCompile(`msg="gateway listens".* addr=(\S+)`)

// startGateway starts a relay with a gateway in front of a broker, until the
// test ends, and returns where clients connect.
func startGateway(t *testing.T, broker string) (addr string) {
	t.Helper()
	cmd := exec.Command(os.Getenv(binaryVariable), "relay", "--rabbitmq", broker, "--management", "none", "--gateway", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start duepost: %v", err)
	}
	listens := make(chan string, 1)
	exited := make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if found := gatewayListens.FindStringSubmatch(lines.Text()); found != nil {
				listens <- found[1]
			}
		}
		exited <- cmd.Wait()
	}()
	t.Cleanup(func() {
		if err := cmd.Process.Kill(); err != nil {
			t.Errorf("kill duepost: %v", err)
		}
		<-exited
	})
	select {
	case addr = <-listens:
	case err := <-exited:
		exited <- err
		t.Fatalf("duepost ended: %v", err)
	case <-time.After(readyWithin):
		t.Fatalf("the gateway does not listen after %s", readyWithin)
	}
	return addr
}
