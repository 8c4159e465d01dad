// Command go plays one scheme with the Go client against the broker at
// DUEPOST_E2E_URL. Without arguments it lists the schemes; see package e2e.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
)

// schemes is every way of using the broker that this program plays.
func schemes() map[string]func(*stage) {
	return map[string]func(*stage){
		"confirms":         confirms,
		"delayed-exchange": delayedExchange,
		"delayed-retry":    delayedRetry,
		"delayed-tx":       delayedTx,
		"delayed-types":    delayedTypes,
		"head-of-line":     headOfLine,
		"manual-ack":       manualAck,
		"order-close":      orderClose,
		"queue-ttl":        queueTTL,
		"rejects":          rejects,
		"returns":          returns,
		"routing":          routing,
		"staircase":        staircase,
		"tiers":            tiers,
	}
}

func main() {
	if len(os.Args) == 1 {
		for _, name := range slices.Sorted(maps.Keys(schemes())) {
			fmt.Println(name)
		}
		return
	}
	play, ok := schemes()[os.Args[1]]
	if !ok {
		fmt.Fprintf(os.Stderr, "no scheme named %s\n", os.Args[1])
		os.Exit(2)
	}
	if err := perform(os.Args[1], play); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
