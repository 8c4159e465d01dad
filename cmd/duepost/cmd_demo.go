package main

type demoCmd struct{}

func (c *demoCmd) Run() error { return nil }
