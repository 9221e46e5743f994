package translate

import (
	"strconv"
	"strings"

	"redlock-proxy/proxy/nodes"
)

// translateNodeTable translates a reply to CLUSTER NODES: a text with a line for each node.
func (t *translation) translateNodeTable(reply element) (element, bool) {
	text, ok := reply.body()
	if !ok {
		return element{}, false
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		translated, known, ok := t.translateNodeLine(line)
		switch {
		case !ok:
			return element{}, false
		case known:
			b.WriteString(translated)
		}
	}
	return reply.withBody(b.String()), true
}

// translateNodeLines translates a reply to CLUSTER REPLICAS: a list of lines as in CLUSTER NODES.
func (t *translation) translateNodeLines(reply element) (element, bool) {
	if !reply.isList() {
		return element{}, false
	}
	kept := []element{}
	for _, line := range reply.children {
		text, ok := line.body()
		if !ok {
			return element{}, false
		}
		translated, known, ok := t.translateNodeLine(text)
		switch {
		case !ok:
			return element{}, false
		case known:
			kept = append(kept, line.withBody(translated))
		}
	}
	reply.children = kept
	return reply, true
}

// translateNodeLine translates a line of CLUSTER NODES: the ID, the address, and words that stay.
// known is false for a node that the map does not know.
func (t *translation) translateNodeLine(line string) (translated string, known, ok bool) {
	if strings.TrimSpace(line) == "" {
		return line, true, true
	}
	id, rest, ok1 := strings.Cut(line, " ")
	addr, rest, ok2 := strings.Cut(rest, " ")
	_, port, hostname, ok3 := nodes.SplitAddr(addr)
	if !ok1 || !ok2 || !ok3 || id == "" {
		return "", false, false
	}
	if port == 0 && strings.HasPrefix(addr, ":0") && hostname == "" { // a node without an address
		return id + " :0@0 " + rest, true, true
	}
	listen, known := t.find(id, "", 0)
	own := t.addr(listen)
	if _, after, hasBus := strings.Cut(addr, "@"); hasBus {
		own += "@" + strconv.Itoa(listen)
		if _, fields, hasFields := strings.Cut(after, ","); hasFields {
			own += "," + t.translateNodeFields(fields)
		}
	}
	return id + " " + own + " " + rest, known, true
}

// translateNodeFields translates the fields behind an address: a name, and fields of the form
// name=value, of which only the ID of the shard stays.
func (t *translation) translateNodeFields(fields string) string {
	hostname, more, hasMore := strings.Cut(fields, ",")
	kept := []string{t.hostIfSet(hostname)}
	for hasMore {
		var field string
		field, more, hasMore = strings.Cut(more, ",")
		if strings.HasPrefix(field, "shard-id=") {
			kept = append(kept, field)
		}
	}
	return strings.Join(kept, ",")
}

// translateSlots translates a reply to CLUSTER SLOTS: for each range of slots, its first and last
// slot, the master and the replicas. A range whose master is unknown is left out.
func (t *translation) translateSlots(reply element) (element, bool) {
	if !reply.isList() {
		return element{}, false
	}
	ranges := []element{}
	for _, slots := range reply.children {
		if !slots.isList() || len(slots.children) < 2 {
			return element{}, false
		}
		kept := slots.children[:2:2]
		for _, node := range slots.children[2:] {
			translated, known, ok := t.translateSlotsNode(node)
			switch {
			case !ok:
				return element{}, false
			case known:
				kept = append(kept, translated)
			case len(kept) == 2: // the master
				kept = nil
			}
			if kept == nil {
				break
			}
		}
		if kept != nil {
			ranges = append(ranges, element{kind: slots.kind, children: kept})
		}
	}
	reply.children = ranges
	return reply, true
}

// translateSlotsNode translates a node of CLUSTER SLOTS: its host, its port and, since Redis 4, its
// ID, and since Redis 7 more names of its host.
func (t *translation) translateSlotsNode(node element) (translated element, known, ok bool) {
	if !node.isList() || len(node.children) < 2 {
		return element{}, false, false
	}
	parts := append([]element(nil), node.children...)
	port, err := strconv.ParseUint(parts[1].value(), 10, 16)
	if err != nil {
		return element{}, false, false
	}
	id := ""
	if len(parts) > 2 {
		id = parts[2].value()
	}
	listen, known := t.find(id, parts[0].value(), int(port))
	parts[0], parts[1] = stringElement(t.Host), numberElement(listen)
	for i := 3; i < len(parts); i++ {
		if parts[i], ok = t.translateHostNames(parts[i]); !ok {
			return element{}, false, false
		}
	}
	return element{kind: node.kind, children: parts}, known, true
}

// translateHostNames translates the names of a host: pairs of a name and a value. Values under
// other names, such as Valkey's availability-zone, stay.
func (t *translation) translateHostNames(names element) (element, bool) {
	if !names.isPairs() {
		return element{}, false
	}
	pairs := append([]element{}, names.children...)
	for i := 0; i < len(pairs); i += 2 {
		if name := pairs[i].value(); name == "ip" || name == "hostname" {
			pairs[i+1] = stringElement(t.hostIfSet(pairs[i+1].value()))
		}
	}
	return element{kind: names.kind, children: pairs}, true
}

// translateShards translates a reply to CLUSTER SHARDS: pairs for each shard, with a list of its
// nodes. A shard is left out if none of its nodes is known.
func (t *translation) translateShards(reply element) (element, bool) {
	if !reply.isList() {
		return element{}, false
	}
	shards := []element{}
	for _, shard := range reply.children {
		if !shard.isPairs() {
			return element{}, false
		}
		pairs, hasNodes := append([]element{}, shard.children...), false
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i].value() != "nodes" {
				continue
			}
			list, ok := t.translateShardNodes(pairs[i+1])
			if !ok {
				return element{}, false
			}
			pairs[i+1], hasNodes = list, len(list.children) > 0
		}
		if hasNodes {
			shards = append(shards, element{kind: shard.kind, children: pairs})
		}
	}
	reply.children = shards
	return reply, true
}

func (t *translation) translateShardNodes(list element) (element, bool) {
	if !list.isList() {
		return element{}, false
	}
	kept := []element{}
	for _, node := range list.children {
		if !node.isPairs() {
			return element{}, false
		}
		translated, known := t.translateShardNode(node)
		if known {
			kept = append(kept, translated)
		}
	}
	return element{kind: list.kind, children: kept}, true
}

// translateShardNode translates a node of CLUSTER SHARDS. Its one port is named as a client of the
// proxy needs it: tls-port if clients speak TLS, else port.
func (t *translation) translateShardNode(node element) (translated element, known bool) {
	id, portName := "", "port"
	if t.TLS {
		portName = "tls-port"
	}
	for i := 0; i < len(node.children); i += 2 {
		if node.children[i].value() == "id" {
			id = node.children[i+1].value()
		}
	}
	if id == "" {
		t.incomplete = true
		return element{}, false
	}
	listen, known := t.find(id, "", 0)
	translated, hasPort := element{kind: node.kind, children: []element{}}, false
	for i := 0; i < len(node.children); i += 2 {
		name, value := node.children[i], node.children[i+1]
		switch name.value() {
		case "port", "tls-port":
			if hasPort {
				continue
			}
			hasPort, name, value = true, stringElement(portName), numberElement(listen)
		case "endpoint":
			value = stringElement(t.Host)
		case "ip", "hostname":
			value = stringElement(t.hostIfSet(value.value()))
		}
		translated.children = append(translated.children, name, value)
	}
	return translated, known
}
