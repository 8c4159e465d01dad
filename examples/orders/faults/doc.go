// Package faults tests the shop with thousands of orders while its broker is killed, its connections are
// cut, its database is away and its clocks are wrong. It has only tests.
//
// DUEPOST_TEST_ORDERS is how many orders there are, DUEPOST_TEST_SEED repeats a run.
package faults
