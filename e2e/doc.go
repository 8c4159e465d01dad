// Package e2e looks at duepost from outside: it builds the program from source,
// starts "duepost serve" on free ports and an empty directory, and lets clients
// of five languages talk to it over AMQP. It imports no package of the broker.
//
// The folders go, java, node, php and python each hold one program with the
// same command line: without arguments it lists its schemes, with the name of a
// scheme it plays that one against the broker at DUEPOST_E2E_URL and exits with
// 0 if the broker kept its word. A scheme is a way of using a broker for delays
// that people write about: TTL and dead letters, tiers of waiting queues, the
// delayed exchange, the staircase of re-checks, retries, confirms. The programs
// measure lateness against the machine's clock: nothing may come early, and
// nothing later than DUEPOST_E2E_SLACK_MS after it was due.
//
// Where the test run itself has DUEPOST_E2E_URL set, that broker is used
// instead. On RabbitMQ without the delayed exchange's plugin the schemes that
// need it are skipped, and head-of-line must fail: that RabbitMQ lets a short
// delay wait for a long one before it is the one difference meant here.
package e2e
