// Package storebench measures the store at scale: how fast delayed messages get
// in and out, what they cost in processor time, memory and bytes written, and how
// long opening takes after a kill, beside yardsticks of the disk measured in the
// same run.
//
// It knows the store's interface and the operating system's figures of the
// process. It does not know AMQP, and makes no judgement: it reports.
package storebench
