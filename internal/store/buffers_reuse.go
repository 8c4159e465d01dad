//go:build !race

package store

const reuseBuffers = true
