package web_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/duepost/duepost"
	"github.com/duepost/duepost/dialect"
	"github.com/duepost/duepost/duepostest"
	"github.com/duepost/duepost/examples/orders/shop"
	"github.com/duepost/duepost/examples/orders/web"
	"github.com/duepost/duepost/ladder"
)

// serve runs a shop that sells a mug, and returns where it is.
func serve(t *testing.T) string {
	t.Helper()
	client, err := duepost.Connect(t.Context(), duepost.Options{URL: duepostest.Start(t).URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "shop.db")+"?_pragma=busy_timeout(20000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	s, err := shop.New(t.Context(), shop.Config{DB: db, Dialect: dialect.SQLite, Client: client,
		Steps: ladder.Steps{First: time.Minute, Deadline: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stock(t.Context(), shop.Item{SKU: "mug", Name: "Mug", Free: 2}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	handler, err := web.New(ctx, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() { cancel(); server.Close() })
	return server.URL
}

// call sends a request and returns the status and the JSON of the answer.
func call(t *testing.T, method, url, body string, header ...string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var value map[string]any
	if answer.Header.Get("Content-Type") == "application/json" {
		if err := json.NewDecoder(answer.Body).Decode(&value); err != nil {
			t.Fatal(err)
		}
	}
	return answer.StatusCode, value
}

func TestOrdersOverHTTP(t *testing.T) {
	t.Parallel()
	url := serve(t)
	status, order := call(t, "POST", url+"/api/orders", `{"sku": "mug", "quantity": 2}`)
	if status != http.StatusCreated || order["status"] != "unpaid" {
		t.Fatalf("placing an order: %d %v", status, order)
	}
	path := url + "/api/orders/" + order["id"].(string)
	for _, c := range []struct {
		method, url, body string
		status            int
		key, want         string
	}{
		{"GET", path, "", 200, "status", "unpaid"},
		{"POST", url + "/api/orders", `{"sku": "mug", "quantity": 1}`, 409, "error", shop.ErrSoldOut.Error()},
		{"POST", url + "/api/orders", `{"sku": "mug", "quantity": 0}`, 400, "error", shop.ErrQuantity.Error()},
		{"POST", url + "/api/orders", `{"sku": "cup", "quantity": 1}`, 404, "error", shop.ErrUnknown.Error()},
		{"POST", url + "/api/orders", `{"sku": "mug", "amount": 1}`, 400, "error", `read order: json: unknown field "amount"`},
		{"POST", url + "/api/orders", `no JSON`, 400, "error", "read order: invalid character 'o' in literal null (expecting 'u')"},
		{"POST", path + "/pay", "", 200, "status", "paid"},
		{"POST", path + "/pay", "", 200, "status", "paid"},
		{"POST", url + "/api/orders/none/pay", "", 404, "error", shop.ErrUnknown.Error()},
		{"GET", url + "/api/orders/none", "", 404, "error", shop.ErrUnknown.Error()},
	} {
		status, answer := call(t, c.method, c.url, c.body)
		if status != c.status || answer[c.key] != c.want {
			t.Errorf("%s %s %s: %d %v, want %d %s", c.method, c.url, c.body, status, answer, c.status, c.want)
		}
	}
	if status, _ := call(t, "POST", path+"/pay", "", "Sec-Fetch-Site", "cross-site"); status != http.StatusForbidden {
		t.Errorf("a page of somebody else may pay: %d", status)
	}
}

// What changes is told to who listens.
func TestEvents(t *testing.T) {
	t.Parallel()
	url := serve(t)
	r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/api/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	next := func() (o shop.Overview) {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(text), &o); err != nil {
					t.Fatal(err)
				}
				return o
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return o
	}
	if o := next(); len(o.Orders) != 0 || len(o.Items) != 1 || o.Items[0].Free != 2 {
		t.Errorf("at first: %+v", o)
	}
	call(t, "POST", url+"/api/orders", `{"sku": "mug", "quantity": 1}`)
	if o := next(); len(o.Orders) != 1 || o.Orders[0].Status != shop.Unpaid || o.Items[0].Held != 1 {
		t.Errorf("after an order: %+v", o)
	}
}
