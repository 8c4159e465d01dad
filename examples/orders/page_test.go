package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/duepost/duepost/internal/requirement"
)

// start runs the program and returns where its page is.
func start(t *testing.T, o options) string {
	t.Helper()
	o.listen = "127.0.0.1:0"
	r, w := io.Pipe()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, o, w)
		w.CloseWithError(io.EOF)
		ended <- err
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the program ended with: %v", err)
		}
	})
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("the program ended with: %v", <-ended)
	}
	return strings.TrimSpace(strings.TrimPrefix(line, "open "))
}

// browser is a tab of a headless Chromium.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := requirement.Tool(t, "chromium", "apt-get install chromium")
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), flags...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	// The first action starts the browser, which lives as long as the context of that action.
	do(t, ctx, "start the browser", chromedp.Navigate("about:blank"))
	ctx, cancel = context.WithTimeout(ctx, 90*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// do does things in the page and ends the test if one cannot be done in time.
func do(t *testing.T, ctx context.Context, what string, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		fail(t, ctx, what, err)
	}
}

// fail ends the test with what the page says, if it still can say it.
func fail(t *testing.T, ctx context.Context, what string, err error) {
	t.Helper()
	page, _ := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("body")))
	t.Fatalf("%s: %v; the page says:\n%s", what, err, page)
}

func click(selector string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.CSS(selector))
}

// becomes waits until an element's text is as the pattern says, and returns it.
func becomes(t *testing.T, ctx context.Context, selector, pattern string) string {
	t.Helper()
	text, err := chromedp.Run(ctx, chromedp.Poll[string](fmt.Sprintf(
		`(() => { const e = document.querySelector(%q); return e && new RegExp(%q).test(e.textContent) ? e.textContent : null })()`,
		selector, pattern), chromedp.WithPollingInterval(20*time.Millisecond)))
	if err != nil {
		fail(t, ctx, fmt.Sprintf("%s becomes %s", selector, pattern), err)
	}
	return text
}

// A customer places two orders on the page, pays one, and sees the other counted down, looked at and closed.
func TestPage(t *testing.T) {
	t.Parallel()
	ctx := browser(t)
	url := start(t, options{payWithin: 6 * time.Second, firstLook: time.Second})
	do(t, ctx, "open the page", chromedp.Navigate(url))
	becomes(t, ctx, "#broker", "^Duepost .*native$")
	becomes(t, ctx, `[data-key="record"] .free-number`, "^3 free$")

	do(t, ctx, "order a record", click(`[data-key="record"] .order`))
	becomes(t, ctx, `[data-key="record"] .held-number`, "^1 held$")
	do(t, ctx, "pay for it", click(`tr[data-status="unpaid"] .pay`))
	becomes(t, ctx, `tr[data-status="paid"] .status`, "^paid$")
	becomes(t, ctx, `[data-key="record"] .sold-number`, "^1 sold$")

	do(t, ctx, "order a mug", click(`[data-key="mug"] .order`))
	unpaid := `tr[data-status="unpaid"] `
	first := becomes(t, ctx, unpaid+".left", `^[1-6]\.\d s$`)
	becomes(t, ctx, unpaid+".next", `^in \d\.\d s$`)
	becomes(t, ctx, unpaid+".looks", "^1$")
	if next := becomes(t, ctx, unpaid+".left", `^[1-5]\.\d s$`); next >= first {
		t.Errorf("the countdown goes from %s to %s", first, next)
	}
	if path := os.Getenv("DUEPOST_TEST_SCREENSHOT"); path != "" {
		shoot(t, ctx, path)
	}
	becomes(t, ctx, `tr[data-status="closed"] .status`, "^closed$")
	becomes(t, ctx, `tr[data-status="closed"] .looks`, "^3$")
	becomes(t, ctx, `tr[data-status="closed"] .letters`, "^letter sent$")
	becomes(t, ctx, `[data-key="mug"] .free-number`, "^20 free$")
	late := becomes(t, ctx, `tr[data-status="closed"] .late`, `^\d+ ms$`)
	if !regexp.MustCompile(`^\d{1,3} ms$`).MatchString(late) {
		t.Errorf("the last step was late by %s, want less than a second", late)
	}

	for range 2 {
		do(t, ctx, "order more records", click(`[data-key="record"] .order`))
	}
	becomes(t, ctx, `[data-key="record"] .free-number`, "^0 free$")
	do(t, ctx, "order one too many", click(`[data-key="record"] .order`))
	becomes(t, ctx, "#fault", "not enough in stock")
}

// shoot takes a picture of the page.
func shoot(t *testing.T, ctx context.Context, path string) {
	t.Helper()
	do(t, ctx, "set the size", chromedp.EmulateViewport(1100, 800))
	picture, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		fail(t, ctx, "take a picture", err)
	}
	if err := os.WriteFile(path, picture, 0o600); err != nil {
		t.Fatal(err)
	}
}
