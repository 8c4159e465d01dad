package duepost

import (
	"context"
	"encoding/json"
	"fmt"
)

// JSON makes a Handler of a function that takes the decoded body. A body that does not decode
// into a T is parked with the reason at once: it would not decode the next time either.
func JSON[T any](f func(ctx context.Context, d *Delivery, v T) error) Handler {
	return func(ctx context.Context, d *Delivery) error {
		var v T
		if err := json.Unmarshal(d.Body, &v); err != nil {
			return Park(fmt.Sprintf("decode JSON: %v", err))
		}
		return f(ctx, d, v)
	}
}
