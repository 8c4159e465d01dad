package testbroker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Cluster is RabbitMQ on several nodes of this machine.
type Cluster struct {
	Nodes []*Broker
}

// StartCluster starts so many nodes of the installation that know each other, each with a directory
// of its own below that of the options, and waits until all serve. Nodes that run are stopped if
// one does not.
func (r RabbitMQ) StartCluster(ctx context.Context, nodes int, o Options) (*Cluster, error) {
	c := &Cluster{}
	for i := range nodes {
		one := o
		one.Dir = filepath.Join(o.Dir, fmt.Sprint("node", i))
		b, err := r.prepare(one)
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, b)
	}
	if err := c.introduce(o.Dir); err != nil {
		return nil, err
	}
	faults := make([]error, nodes)
	var starting sync.WaitGroup
	for i, b := range c.Nodes {
		starting.Go(func() { faults[i] = b.Start(ctx) })
	}
	starting.Wait()
	if err := errors.Join(faults...); err != nil {
		return nil, errors.Join(err, c.Kill())
	}
	return c, nil
}

// introduce tells each node of all, and the secret that they share.
func (c *Cluster) introduce(dir string) error {
	var text strings.Builder
	text.WriteString("cluster_formation.peer_discovery_backend = classic_config\n")
	for i, b := range c.Nodes {
		fmt.Fprintf(&text, "cluster_formation.classic_config.nodes.%d = %s\n", i+1, b.node())
	}
	for i := range c.Nodes {
		home := filepath.Join(dir, fmt.Sprint("node", i))
		conf, err := os.OpenFile(filepath.Join(home, "rabbitmq.conf"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
		_, err = conf.WriteString(text.String())
		secret := os.WriteFile(filepath.Join(home, ".erlang.cookie"), []byte("DUEPOST"), 0o400)
		if err := errors.Join(err, conf.Close(), secret); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
	}
	return nil
}

// URLs are where clients connect as guest, by node.
func (c *Cluster) URLs() (all []string) {
	for _, b := range c.Nodes {
		all = append(all, b.URL())
	}
	return all
}

// Kill ends all nodes as a crash of each would.
func (c *Cluster) Kill() error {
	var faults []error
	for _, b := range c.Nodes {
		faults = append(faults, b.Kill())
	}
	return errors.Join(faults...)
}

// CutOff parts a node from the others, which serve on without it. Its own clients stay connected to
// it. Each side refuses what the other says, as after the secret was changed.
func (c *Cluster) CutOff(ctx context.Context, node int) error {
	_, err := c.Nodes[node].Control(ctx, "eval", `[begin
		erlang:set_cookie(N, cut_off), erlang:disconnect_node(N) end || N <- `+c.others(node)+`].`)
	return err
}

// Rejoin ends what CutOff began.
func (c *Cluster) Rejoin(ctx context.Context, node int) error {
	_, err := c.Nodes[node].Control(ctx, "eval", `[begin
		erlang:set_cookie(N, erlang:get_cookie()), net_kernel:connect_node(N) end || N <- `+c.others(node)+`].`)
	return err
}

// others are the names of the nodes but one, as a list in Erlang.
func (c *Cluster) others(node int) string {
	var names []string
	for i, b := range c.Nodes {
		if i != node {
			names = append(names, "'"+b.node()+"'")
		}
	}
	return "[" + strings.Join(names, ",") + "]"
}
