package translate

import (
	"strconv"
	"strings"
)

// translateInfo translates a reply to INFO. Lines that name an unknown node are left out, and so
// are the lines about the addresses on which the node listens.
func (t *translation) translateInfo(reply element) (element, bool) {
	text, ok := reply.body()
	if !ok {
		return element{}, false
	}
	masterHost, masterPort := infoField(text, "master_host"), infoField(text, "master_port")
	number, _ := strconv.ParseUint(masterPort, 10, 16)
	masterListen, masterKnown := 0, true
	if masterHost != "" {
		masterListen, masterKnown = t.find("", masterHost, int(number))
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(line, ":")
		end := value[len(strings.TrimRight(value, "\r\n")):]
		value = strings.TrimRight(value, "\r\n")
		switch {
		case name == "master_host" && masterKnown:
			line = name + ":" + t.hostIfSet(value) + end
		case name == "master_port" && masterKnown:
			line = name + ":" + strconv.Itoa(masterListen) + end
		case name == "master_host", name == "master_port", isNumbered(name, "listener"):
			continue
		case name == "tcp_port":
			port, _ := strconv.ParseUint(value, 10, 16)
			listen, known := t.portOf("", t.NodeHost, int(port))
			if !known {
				continue
			}
			line = name + ":" + strconv.Itoa(listen) + end
		case isNumbered(name, "slave"):
			value, known := t.translateInfoReplica(value)
			if !known {
				continue
			}
			line = name + ":" + value + end
		}
		b.WriteString(line)
	}
	return reply.withBody(b.String()), true
}

// infoField returns the value of a field of INFO; empty if it has none.
func infoField(text, name string) string {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimRight(value, "\r\n")
		}
	}
	return ""
}

// isNumbered reports whether a name is the prefix and a number.
func isNumbered(name, prefix string) bool {
	digits, ok := strings.CutPrefix(name, prefix)
	return ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// translateInfoReplica translates the value of a field such as slave0: ip=…,port=…,state=… and
// more.
func (t *translation) translateInfoReplica(value string) (translated string, known bool) {
	fields := strings.Split(value, ",")
	host, port := "", 0
	for _, field := range fields {
		name, text, _ := strings.Cut(field, "=")
		switch name {
		case "ip":
			host = text
		case "port":
			number, _ := strconv.ParseUint(text, 10, 16)
			port = int(number)
		}
	}
	listen, known := t.find("", host, port)
	for i, field := range fields {
		switch name, _, _ := strings.Cut(field, "="); name {
		case "ip":
			fields[i] = "ip=" + t.Host
		case "port":
			fields[i] = "port=" + strconv.Itoa(listen)
		}
	}
	return strings.Join(fields, ","), known
}

// translateRole translates a reply to ROLE: of a master with its replicas, or of a replica with its
// master.
func (t *translation) translateRole(reply element) (element, bool) {
	if !reply.isList() || len(reply.children) == 0 {
		return element{}, false
	}
	parts := append([]element(nil), reply.children...)
	switch kind := parts[0].value(); {
	case kind == "master" && len(parts) == 3:
		list, ok := t.translateRoleReplicas(parts[2])
		if !ok {
			return element{}, false
		}
		parts[2] = list
	case kind == "slave" && len(parts) == 5:
		port, _ := strconv.ParseUint(parts[2].value(), 10, 16)
		listen, known := t.find("", parts[1].value(), int(port))
		parts[1], parts[2] = stringElement(t.Host), numberElement(listen)
		if !known {
			parts[1], parts[2] = stringElement(""), numberElement(0)
		}
	default:
		return element{}, false
	}
	return element{kind: reply.kind, children: parts}, true
}

// translateRoleReplicas translates the replicas of ROLE: a list of host, port as a string, and
// offset.
func (t *translation) translateRoleReplicas(list element) (element, bool) {
	if !list.isList() {
		return element{}, false
	}
	kept := []element{}
	for _, replica := range list.children {
		if !replica.isList() || len(replica.children) < 2 {
			return element{}, false
		}
		parts := append([]element(nil), replica.children...)
		port, _ := strconv.ParseUint(parts[1].value(), 10, 16)
		listen, known := t.find("", parts[0].value(), int(port))
		if known {
			parts[0], parts[1] = stringElement(t.Host), stringElement(strconv.Itoa(listen))
			kept = append(kept, element{kind: replica.kind, children: parts})
		}
	}
	return element{kind: list.kind, children: kept}, true
}
