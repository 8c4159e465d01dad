package broker

import (
	"bytes"
	"slices"
	"strings"
)

// topicNode is a word of binding patterns: a trie over words, in which '*' stands for exactly
// one word and '#' for any number of them. [amqp 3.1.3.3]
type topicNode struct {
	words  map[string]*topicNode
	star   *topicNode
	hash   *topicNode
	isHash bool
	ends   *destinations // of patterns that end here
}

// insert adds a binding by its routing key. It is called before the trie is published. An empty
// key has no word at all, as in RabbitMQ.
func (n *topicNode) insert(b *binding) {
	if b.routingKey != "" {
		for word := range strings.SplitSeq(b.routingKey, ".") {
			n = n.child(word)
		}
	}
	if n.ends == nil {
		n.ends = new(destinations)
	}
	n.ends.add(b)
}

func (n *topicNode) child(word string) *topicNode {
	switch word {
	case "*":
		if n.star == nil {
			n.star = new(topicNode)
		}
		return n.star
	case "#":
		if n.hash == nil {
			n.hash = &topicNode{isHash: true}
		}
		return n.hash
	}
	c := n.words[word]
	if c == nil {
		if n.words == nil {
			n.words = make(map[string]*topicNode)
		}
		c = new(topicNode)
		n.words[word] = c
	}
	return c
}

// topicMatch is the working space of a match: the nodes that the words so far lead to.
//
// All of them go forward together, one word at a time, instead of one after the other with
// going back: a pattern of many '#' would take exponential time that way.
type topicMatch struct {
	now, next []*topicNode
}

// match appends what the patterns that the key matches lead to.
func (m *topicMatch) match(root *topicNode, key []byte, dst []*destinations) []*destinations {
	m.now = appendNode(m.now[:0], root)
	for more := len(key) > 0; more && len(m.now) > 0; {
		var word []byte
		word, key, more = cutWord(key)
		m.step(word)
	}
	for _, n := range m.now {
		if n.ends != nil {
			dst = append(dst, n.ends)
		}
	}
	return dst
}

// step goes forward by one word.
func (m *topicMatch) step(word []byte) {
	m.next = m.next[:0]
	for _, n := range m.now {
		if n.isHash {
			m.next = appendNode(m.next, n)
		}
		if c := n.words[string(word)]; c != nil {
			m.next = appendNode(m.next, c)
		}
		if n.star != nil {
			m.next = appendNode(m.next, n.star)
		}
	}
	m.now, m.next = m.next, m.now
}

// appendNode adds a node and the '#' below it, which needs no word. Only the node of a '#' can
// be reached twice: from above and from itself.
func appendNode(nodes []*topicNode, n *topicNode) []*topicNode {
	if n.isHash && slices.Contains(nodes, n) {
		return nodes
	}
	nodes = append(nodes, n)
	if n.hash != nil {
		nodes = appendNode(nodes, n.hash)
	}
	return nodes
}

func cutWord(key []byte) (word, rest []byte, more bool) {
	if i := bytes.IndexByte(key, '.'); i >= 0 {
		return key[:i], key[i+1:], true
	}
	return key, nil, false
}
