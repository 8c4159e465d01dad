// Package sdk looks at the Go SDK from outside, on real RabbitMQs: this machine's and, where
// DUEPOST_TEST_RABBITMQ43 names one, a 4.3. What the SDK does on Duepost, the tests of its own
// package try.
package sdk
