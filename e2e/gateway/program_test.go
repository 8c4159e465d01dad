package gateway

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/duepost/duepost/internal/requirement"
	"github.com/duepost/duepost/internal/testbroker"
)

// TestProgram plays clients of "duepost relay --gateway" as a process, with TLS on both sides.
func TestProgram(t *testing.T) {
	t.Parallel()
	all, err := testbroker.InstalledRabbitMQs()
	must(t, err)
	if len(all) == 0 {
		requirement.Missing(t, "RabbitMQ", "Debian package rabbitmq-server")
	}
	duepost, err := testbroker.BuildDuepost(t.Context(), "", t.TempDir())
	must(t, err)
	for _, installed := range all {
		t.Run(installed.Version, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			certificate(t, dir)
			secure, err := freeAddr()
			must(t, err)
			seen := installed.Seen(dir)
			b, err := installed.Start(t.Context(), testbroker.Options{Dir: dir, Config: "max_message_size = 134217728\nlisteners.ssl.1 = " + secure + "\n" +
				"ssl_options.cacertfile = " + seen + "/cert.pem\nssl_options.certfile = " + seen + "/cert.pem\n" +
				"ssl_options.keyfile = " + seen + "/key.pem\n"})
			must(t, err)
			t.Cleanup(func() { must(t, b.Kill()) })
			_, err = b.Control(t.Context(), "await_startup") // which the port with TLS needs longer for
			must(t, err)
			p := startProgram(t, duepost, "relay", "--gateway", "127.0.0.1:0", "--management", "none",
				"--rabbitmq", "amqps://guest:guest@"+secure+"/?cacertfile="+dir+"/cert.pem",
				"--gateway-tls-cert", dir+"/cert.pem", "--gateway-tls-key", dir+"/key.pem")
			p.url, p.dir = "amqps://guest:guest@"+p.addr+"/", dir
			for _, story := range []struct {
				name string
				play func(*gatewayProgram, *testing.T)
			}{
				{"delays", (*gatewayProgram).delays}, {"keys and lives", (*gatewayProgram).keysAndLives},
				{"declarations", (*gatewayProgram).declarations},
				{"large bodies", (*gatewayProgram).largeBodies}, {"stop", (*gatewayProgram).stop},
			} {
				t.Run(story.name, func(t *testing.T) { story.play(p, t) })
			}
		})
	}
}

// TestGatewayAlone is a gateway without a relay, and a relay without a gateway, side by side.
func TestGatewayAlone(t *testing.T) {
	t.Parallel()
	duepost, err := testbroker.BuildDuepost(t.Context(), "", t.TempDir())
	must(t, err)
	b := testbroker.StartRabbitMQ(t, testbroker.Options{})
	p := startProgram(t, duepost, "relay", "--rabbitmq", b.URL(), "--gateway", "127.0.0.1:0", "--gateway-only")
	p.url = "amqp://guest:guest@" + p.addr + "/"
	ch := channel(t, p.dial(t))
	must(t, declare(ch, "alone", "fanout", ""))
	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	must(t, err)
	must(t, ch.QueueBind(q.Name, "", "alone", false, nil))
	must(t, ch.Publish("alone", "", false, false, amqp.Publishing{Headers: amqp.Table{"x-delay": 1}, MessageId: "late"}))
	must(t, ch.Publish("alone", "", false, false, amqp.Publishing{MessageId: "plain"}))
	if d := next(t, ch, q.Name); d.MessageId != "plain" {
		t.Errorf("got message %q, which only a relay hands on", d.MessageId)
	}
	startProgram(t, duepost, "relay", "--rabbitmq", b.URL(), "--management", "none")
	if d := next(t, ch, q.Name); d.MessageId != "late" {
		t.Errorf("got message %q", d.MessageId)
	}
}

// delays plays what the plugin is used for. The program is like those written for the plugin: it
// knows a port and no Duepost.
func (p *gatewayProgram) delays(t *testing.T) {
	ch := channel(t, p.dial(t))
	must(t, declare(ch, "order.delay", "direct", ""))
	q, err := ch.QueueDeclare("order.check", true, false, false, false, nil)
	must(t, err)
	must(t, ch.QueueBind(q.Name, "check", "order.delay", false, nil))
	in, err := ch.Consume(q.Name, "", false, false, false, false, nil)
	must(t, err)
	must(t, ch.Confirm(false))
	sent := map[string]time.Time{}
	delays := map[string]time.Duration{"a": 2500, "b": 400, "c": 1200, "d": 400, "e": 0, "f": 1300}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		sent[id] = time.Now()
		confirm, err := ch.PublishWithDeferredConfirm("order.delay", "check", true, false, amqp.Publishing{
			ContentType: "application/json", MessageId: id, DeliveryMode: amqp.Persistent, Priority: 3,
			Headers: amqp.Table{"x-delay": int32(delays[id]), "trace": "t-" + id},
			Body:    []byte(`{"order":"` + id + `"}`),
		})
		must(t, err)
		if !confirm.Wait() {
			t.Fatalf("%s: not confirmed", id)
		}
	}
	for _, id := range []string{"e", "b", "d", "c", "f", "a"} {
		d := receive(t, in)
		late := time.Since(sent[id]) - delays[id]*time.Millisecond
		t.Logf("%s came %v after it was due", d.MessageId, late.Round(time.Millisecond))
		if d.MessageId != id {
			t.Fatalf("got %s, want %s", d.MessageId, id)
		}
		if late < 0 || late > 5*time.Second {
			t.Errorf("%s: %v late", id, late)
		}
		if d.Exchange != "order.delay" || d.RoutingKey != "check" || string(d.Body) != `{"order":"`+id+`"}` ||
			d.ContentType != "application/json" || d.Priority != 3 || d.Headers["trace"] != "t-"+id {
			t.Errorf("%s: got %+v", id, d)
		}
		if want := -int64(delays[id]); id != "e" && d.Headers["x-delay"] != want {
			t.Errorf("%s: x-delay is %v, want %d", id, d.Headers["x-delay"], want)
		}
		for name := range d.Headers {
			if strings.HasPrefix(name, "x-") && name != "x-delay" && name != "x-duepost-id" {
				t.Errorf("%s: header %s = %v", id, name, d.Headers[name])
			}
		}
		must(t, d.Ack(false))
	}
}

// keysAndLives shows what a message has besides its delay: BCC, CC, an expiration.
func (p *gatewayProgram) keysAndLives(t *testing.T) {
	ch := channel(t, p.dial(t))
	must(t, declare(ch, "mail", "direct", ""))
	for _, name := range []string{"to", "cc", "bcc"} {
		_, err := ch.QueueDeclare(name, true, false, false, false, nil)
		must(t, err)
		must(t, ch.QueueBind(name, name, "mail", false, nil))
	}
	// Its expiration would have ended in the middle of the delay.
	must(t, ch.Publish("mail", "to", false, false, amqp.Publishing{
		Headers:    amqp.Table{"x-delay": int64(1500), "CC": []any{"cc"}, "BCC": []any{"bcc"}},
		Expiration: "700", Body: []byte("letter"),
	}))
	if d := next(t, ch, "to"); d.Expiration != "700" || d.Headers["BCC"] != nil || string(d.Body) != "letter" {
		t.Errorf("got %+v", d)
	}
	for _, name := range []string{"cc", "bcc"} { // which nobody consumed meanwhile
		_, err := ch.QueuePurge(name, false)
		must(t, err)
	}
	must(t, ch.Publish("mail", "to", false, false, amqp.Publishing{
		Headers: amqp.Table{"x-delay": "500", "CC": []any{"cc"}, "BCC": []any{"bcc"}}, Body: []byte("again"),
	}))
	for _, name := range []string{"to", "cc", "bcc"} {
		d := next(t, ch, name)
		if d.Headers["BCC"] != nil || d.Headers["CC"] == nil || string(d.Body) != "again" || d.RoutingKey != "to" {
			t.Errorf("%s: got %+v", name, d)
		}
	}
}

// declarations are those that programs repeat, ask for, get wrong, and take back.
func (p *gatewayProgram) declarations(t *testing.T) {
	conn := p.dial(t)
	ch := channel(t, conn)
	must(t, declare(ch, "again", "topic", "amq.fanout"))
	must(t, declare(ch, "again", "topic", "amq.fanout"))
	must(t, ch.ExchangeDeclarePassive("again", "x-delayed-message", true, false, false, false, nil))
	must(t, ch.ExchangeDeclare("again", "x-delayed-message", true, false, false, true,
		amqp.Table{"x-delayed-type": "topic", "alternate-exchange": "amq.fanout"}))
	wantError(t, declare(ch, "again", "direct", "amq.fanout"), 406, "inequivalent arg 'type'")
	wantError(t, declare(channel(t, conn), "again", "topic", ""), 406, "alternate-exchange")
	wantError(t, channel(t, conn).ExchangeDeclare("again", "x-delayed-message", false, false, false, false,
		amqp.Table{"x-delayed-type": "topic", "alternate-exchange": "amq.fanout"}), 406, "durable")
	wantError(t, channel(t, conn).ExchangeDeclare("bare", "x-delayed-message", true, false, false, false, nil), 406, "x-delayed-type")
	ch = channel(t, conn)
	must(t, ch.ExchangeDelete("again", false, false))
	wantError(t, ch.ExchangeDeclarePassive("again", "x-delayed-message", true, false, false, false, nil), 404, "no exchange")
	ch = channel(t, conn)
	must(t, declare(ch, "again", "direct", "")) // another one may have the name
	must(t, ch.ExchangeDelete("again", false, false))
}

// largeBodies shows that the process does not hold a body, however large.
func (p *gatewayProgram) largeBodies(t *testing.T) {
	ch := channel(t, p.dial(t))
	must(t, declare(ch, "large", "fanout", ""))
	q, err := ch.QueueDeclare("", false, false, true, false, nil)
	must(t, err)
	must(t, ch.QueueBind(q.Name, "", "large", false, nil))
	in, err := ch.Consume(q.Name, "", true, false, false, false, nil)
	must(t, err)
	before := peakKiB(t, p.cmd.Process.Pid)
	body := bytes.Repeat([]byte("0123456789abcdef"), 100<<20/16)
	must(t, ch.Publish("large", "", false, false, amqp.Publishing{Body: body}))
	select {
	case d := <-in:
		if !bytes.Equal(d.Body, body) {
			t.Errorf("got %d octets, or others", len(d.Body))
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing came in a minute")
	}
	after := peakKiB(t, p.cmd.Process.Pid)
	t.Logf("peak memory of the process: %d KiB before, %d KiB after", before, after)
	if after > before+20<<10 {
		t.Errorf("100 MiB that passed cost %d KiB", after-before)
	}
}

// peakKiB is the most memory that a process has had.
func peakKiB(t *testing.T, pid int) (n int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(after, &n); err != nil {
		t.Fatalf("read peak of memory: %v", err)
	}
	return n
}

// stop shows that clients are told, and that the process ends in order.
func (p *gatewayProgram) stop(t *testing.T) {
	closed := p.dial(t).NotifyClose(make(chan *amqp.Error, 1))
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if err := <-closed; err == nil || err.Code != amqp.ConnectionForced {
		t.Errorf("the client was told %v, want 320", err)
	}
	if err := <-p.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	p.ended <- nil
}

// gatewayProgram is duepost as a process.
type gatewayProgram struct {
	cmd   *exec.Cmd
	addr  string // of the gateway, if it has one
	ended chan error
	url   string
	dir   string // with its certificate, if it has one
}

var listens = regexp.MustCompile(`msg="gateway listens".* addr=(\S+)`)

// startProgram starts duepost and waits until the gateway listens and the relay works, as asked for.
func startProgram(t *testing.T, program string, args ...string) *gatewayProgram {
	t.Helper()
	p := &gatewayProgram{cmd: exec.Command(program, args...), ended: make(chan error, 1)}
	stderr, err := p.cmd.StderrPipe()
	must(t, err)
	must(t, p.cmd.Start())
	ready := make(chan string, 10) // addresses, empty for the relay
	go func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			t.Log(lines.Text())
			if found := listens.FindStringSubmatch(lines.Text()); found != nil {
				ready <- found[1]
			} else if strings.Contains(lines.Text(), `msg="relay at work"`) {
				ready <- ""
			}
		}
		p.ended <- p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.ended
	})
	parts := 2
	if slices.Contains(args, "--gateway-only") || !slices.Contains(args, "--gateway") {
		parts = 1
	}
	for range parts {
		select {
		case addr := <-ready:
			p.addr += addr
		case err := <-p.ended:
			p.ended <- err
			t.Fatalf("%q ended: %v", args, err)
		case <-time.After(30 * time.Second):
			t.Fatalf("%q is not ready", args)
		}
	}
	return p
}

// dial is a client of the gateway.
func (p *gatewayProgram) dial(t *testing.T) *amqp.Connection {
	t.Helper()
	cfg := amqp.Config{}
	if p.dir != "" {
		text, err := os.ReadFile(filepath.Join(p.dir, "cert.pem"))
		must(t, err)
		cfg.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool()}
		cfg.TLSClientConfig.RootCAs.AppendCertsFromPEM(text)
	}
	conn, err := amqp.DialConfig(p.url, cfg)
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

func receive(t *testing.T, in <-chan amqp.Delivery) amqp.Delivery {
	t.Helper()
	select {
	case d := <-in:
		return d
	case <-time.After(15 * time.Second):
		t.Fatal("nothing came in 15 s")
		return amqp.Delivery{}
	}
}

// certificate writes cert.pem and key.pem, for 127.0.0.1.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600))
	}
}

func freeAddr() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}
