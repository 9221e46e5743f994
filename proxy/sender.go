package proxy

import (
	"context"
	"errors"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/lockkeys/tracking"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

// sender sends scanned bytes to the upstream, or answers commands that cannot be sent. It belongs
// to the session's goroutine.
type sender struct {
	session *session // writes to the client, and discards frames
	relay   *relay
	asker   *asker
	// These fields are parts of the session.
	in     *input
	out    *command.Reply
	client *command.Client

	plainCount      int                  // scanned commands, not yet sent, whose replies change nothing
	unsentExpected  *track.ExpectedReply // a command not yet sent whose reply changes state
	forwarding      bool                 // the current frame is forwarded
	expectedReplies int                  // number of replies expected for the current frame
	partSent        bool                 // a frame was sent in part
	partEnd         int                  // that frame's end in the buffer; 0 if the end was not scanned
	discardRest     bool                 // the frame's beginning could not be sent; discard the rest
}

// countReply returns the number of replies to expect for one more command: 0 if the client has
// turned replies off. It ends a CLIENT REPLY SKIP and a CLIENT CACHING, which apply to one command
// only.
func (s *sender) countReply() int {
	tracking.Of(s.client).ClearCaching()
	s.relay.lastReplyless = s.relay.replyMode != track.ReplyOn
	switch s.relay.replyMode {
	case track.ReplyOn:
		return 1
	case track.ReplySkip:
		s.relay.replyMode = track.ReplyOn
	}
	return 0
}

// markForwarded marks the current frame as forwarded, with this number of replies.
func (s *sender) markForwarded(replies int) {
	s.forwarding, s.expectedReplies = true, replies
	s.plainCount += replies
}

// sendUpTo sends the bytes up to index upTo of the buffer, unless they are already sent. If the
// upstream cannot be reached, it answers the commands with the reason.
func (s *sender) sendUpTo(ctx context.Context, upTo int) error {
	from, plainCount, stateReply := s.in.start, s.plainCount, s.unsentExpected
	upTo = max(from, upTo)
	s.in.start, s.plainCount, s.unsentExpected = upTo, 0, nil
	for from < upTo && !s.discardRest {
		if err := s.session.flush(); err != nil {
			return err
		}
		switch sent, err := s.relay.forward(ctx, s.in.buf[from:upTo], plainCount, stateReply, s.partSent); {
		case err != nil:
			if stateReply != nil {
				plainCount++
			}
			return s.refuse(ctx, s.in.buf[from:upTo], plainCount, err)
		case sent:
			s.partSent, s.partEnd = s.forwarding, 0
			return nil
		case s.partSent:
			from = s.skipBrokenFrame(upTo)
		}
	}
	return nil
}

// skipBrokenFrame skips the rest of a frame that was sent in part over a connection that has ended.
// The client already got an error reply to this frame. skipBrokenFrame returns the index in the
// buffer at which sending continues.
func (s *sender) skipBrokenFrame(upTo int) (from int) {
	s.partSent = false
	if s.partEnd == 0 {
		s.discardRest = true
		return upTo
	}
	return s.partEnd
}

// endFrame resets the state that belongs to the current frame, at the end of the frame.
func (s *sender) endFrame() {
	switch {
	case s.discardRest:
		s.in.skip()
	case s.partSent && s.partEnd == 0: // otherwise the scanned end belongs to a later frame
		s.partEnd = s.in.scanEnd
	}
	s.forwarding, s.discardRest, s.expectedReplies = false, false, 0
}

// cancelLast expects no reply to the current frame, because the rest of it is not sent.
func (s *sender) cancelLast() {
	switch {
	case s.expectedReplies == 0:
	case s.partSent && s.partEnd == 0:
		s.relay.cancelLast()
	case s.unsentExpected != nil:
		s.unsentExpected = nil
	default:
		s.plainCount--
	}
}

// refuse answers n commands with the reason why they cannot be forwarded. A single command that
// ends a busy script runs nevertheless (runOnBusyUpstream), and the client gets the upstream's
// reply. If a cluster's node cannot be reached, the client gets redirects to other nodes, or its
// connection ends.
func (s *sender) refuse(ctx context.Context, commands []byte, n int, reason error) error {
	if n == 1 {
		if answer, handled := runOnBusyUpstream(ctx, s.relay.upstream, &s.session.login, commands, reason); handled {
			s.out.WriteRaw(answer)
			return nil
		}
	}
	var upErr *upstream.Error
	if !errors.As(reason, &upErr) {
		return reason
	}
	if s.relay.nodes != nil && !upErr.IsBusy() {
		replies := s.relay.nodes.redirects(commands, n)
		if replies == nil {
			return errStateLost // a cluster client notices a lost node by its connection
		}
		s.out.WriteRaw(replies)
	} else {
		for range n {
			s.out.WriteError(upErr.Reply())
		}
	}
	s.discardRest = s.forwarding
	return nil
}

// sendCommand forwards the current command, which may change the connection's state.
func (s *sender) sendCommand(expected track.ExpectedReply) error {
	return s.sendFrame(expected, s.in.chunk())
}

// sendFrame forwards frame in place of the current command.
func (s *sender) sendFrame(expected track.ExpectedReply, frame []byte) error {
	if err := s.session.flush(); err != nil {
		return err
	}
	s.relay.count(1, nil)
	if !s.relay.expectStateChange(expected) {
		return errStateLost
	}
	s.relay.send(frame)
	return nil
}

// sendStateCommand forwards frame like sendFrame, but expects no reply if the client has turned
// replies off.
func (s *sender) sendStateCommand(expected track.ExpectedReply, frame []byte) error {
	if s.countReply() > 0 {
		return s.sendFrame(expected, frame)
	}
	s.relay.recordReplyless(expected)
	s.relay.send(frame)
	return nil
}

// sendHello sends a HELLO with these words in place of the current command.
func (s *sender) sendHello(words [][]byte) error {
	if err := s.session.flush(); err != nil {
		return err
	}
	return s.sendStateCommand(track.ExpectedReplyFor("hello", words, len(words)), requestOf([][]string{syntax.Strings(words)}))
}

// applyReplyMode removes the replies from index replyStart on, if the client has turned replies
// off.
func (s *sender) applyReplyMode(replyStart int) {
	if s.relay.replyMode == track.ReplyOn {
		return
	}
	s.out.Truncate(replyStart)
	if s.relay.replyMode == track.ReplySkip {
		s.relay.replyMode = track.ReplyOn
		s.relay.send([]byte(ping)) // makes the upstream skip one reply, too
	}
}

// replyStatus answers a command with a status.
func (s *sender) replyStatus(status string) error {
	replyStart := len(s.out.Bytes)
	s.client.Answer(s.out, func() { s.out.WriteStatus(status) })
	s.applyReplyMode(replyStart)
	return nil
}

func (s *sender) replyError(text string) error {
	replyStart := len(s.out.Bytes)
	s.out.WriteError(text)
	s.applyReplyMode(replyStart)
	return nil
}

// refuseUnsent replies with an error to a command of which no byte was sent, and makes the client's
// transaction fail.
func (s *sender) refuseUnsent(ctx context.Context, text string) error {
	if err := s.asker.abortTx(ctx); err != nil {
		return err
	}
	replyStart := len(s.out.Bytes)
	s.client.Refuse(text, s.out)
	s.client.Transaction.Abort()
	s.applyReplyMode(replyStart)
	return nil
}

// discard discards the current frame and answers it, unless the client has turned replies off.
func (s *sender) discard(answer func(words [][]byte)) error {
	replyStart := len(s.out.Bytes)
	err := s.session.discard(answer)
	s.applyReplyMode(replyStart)
	return err
}
