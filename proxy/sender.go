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

// sender sends to the upstream what was scanned, or answers it where that is not sent. It belongs
// to the session's goroutine.
type sender struct {
	session *session // writes to the client, and throws frames away
	relay   *relay
	asker   *asker
	// The parts of the session that are used here.
	in     *input
	out    *command.Reply
	client *command.Client

	plain    int         // commands scanned and not yet sent, whose answers change nothing
	slot     *track.Slot // a command not yet sent whose answer does
	passing  bool        // the current frame is forwarded
	counted  int         // how many answers are awaited for it
	begun    bool        // a frame was sent in part
	rest     int         // where that frame ends in the buffer, if its end was scanned
	dropping bool        // the current frame's beginning could not be sent; the rest is thrown away
}

// count says how many answers are awaited for one more command: none, where the
// client wants none.
func (s *sender) count() int {
	tracking.Of(s.client).Used()
	s.relay.unnoticed = s.relay.silence != track.Speaking
	switch s.relay.silence {
	case track.Speaking:
		return 1
	case track.SilentOnce:
		s.relay.silence = track.Speaking
	}
	return 0
}

// passOn has the current frame forwarded, for so many answers.
func (s *sender) passOn(answers int) {
	s.passing, s.counted = true, answers
	s.plain += answers
}

// pass sends the bytes up to a place in the buffer, if they are not sent yet. Where there is no
// upstream, the commands in them are answered with the reason.
func (s *sender) pass(ctx context.Context, upTo int) error {
	from, plain, slot := s.in.start, s.plain, s.slot
	upTo = max(from, upTo)
	s.in.start, s.plain, s.slot = upTo, 0, nil
	for from < upTo && !s.dropping {
		if err := s.session.flush(); err != nil {
			return err
		}
		switch sent, err := s.relay.forward(ctx, s.in.buf[from:upTo], plain, slot, s.begun); {
		case err != nil:
			if slot != nil {
				plain++
			}
			return s.refuse(ctx, s.in.buf[from:upTo], plain, err)
		case sent:
			s.begun, s.rest = s.passing, 0
			return nil
		case s.begun:
			from = s.abandon(upTo)
		}
	}
	return nil
}

// abandon skips what remains of a frame that was sent in part, since the connection
// it went to has ended, and with that it was answered.
func (s *sender) abandon(upTo int) (from int) {
	s.begun = false
	if s.rest == 0 {
		s.dropping = true
		return upTo
	}
	return s.rest
}

// endFrame is told of the end of the current frame.
func (s *sender) endFrame() {
	switch {
	case s.dropping:
		s.in.skip()
	case s.begun && s.rest == 0: // else others that were scanned since end here
		s.rest = s.in.scanned
	}
	s.passing, s.dropping, s.counted = false, false, 0
}

// forgo awaits no answer to the current frame: no more of it is sent.
func (s *sender) forgo() {
	switch {
	case s.counted == 0:
	case s.begun && s.rest == 0:
		s.relay.forgo()
	case s.slot != nil:
		s.slot = nil
	default:
		s.plain--
	}
}

// refuse answers n commands with the reason why they cannot be forwarded, but one that frees a busy
// upstream with what that answers.
func (s *sender) refuse(ctx context.Context, commands []byte, n int, reason error) error {
	if n == 1 {
		if answer, done := freeUp(ctx, s.relay.up, &s.session.who, commands, reason); done {
			s.out.Raw(answer)
			return nil
		}
	}
	var failed *upstream.Error
	if !errors.As(reason, &failed) {
		return reason
	}
	for range n {
		s.out.Error(failed.Reply())
	}
	s.dropping = s.passing
	return nil
}

// sendWhole forwards the command that is held, on a connection with state.
func (s *sender) sendWhole(slot track.Slot) error { return s.sendFrame(slot, s.in.chunk()) }

// sendFrame sends it, or another command in its place.
func (s *sender) sendFrame(slot track.Slot, frame []byte) error {
	if err := s.session.flush(); err != nil {
		return err
	}
	s.relay.count(1, nil)
	if !s.relay.follow(slot) {
		return errOver
	}
	s.relay.send(frame)
	return nil
}

// sendFollowed is sendFrame for a command that the client may want no answer to.
func (s *sender) sendFollowed(slot track.Slot, frame []byte) error {
	if s.count() > 0 {
		return s.sendFrame(slot, frame)
	}
	s.relay.unheard(slot)
	s.relay.send(frame)
	return nil
}

// sendHello sends another HELLO in the place of the command that is held.
func (s *sender) sendHello(words [][]byte) error {
	if err := s.session.flush(); err != nil {
		return err
	}
	return s.sendFollowed(track.SlotFor("hello", words, len(words)), requestOf([][]string{syntax.Strings(words)}))
}

// afterOwn takes back the reply where the client asked for silence.
func (s *sender) afterOwn(before int) {
	if s.relay.silence == track.Speaking {
		return
	}
	s.out.TakeBack(before)
	if s.relay.silence == track.SilentOnce {
		s.relay.silence = track.Speaking
		s.relay.send([]byte(ping)) // the upstream, too, keeps silent once
	}
}

// say answers a command with a status, sayError with an error.
func (s *sender) say(status string) error {
	before := len(s.out.Bytes)
	s.client.Answer(s.out, func() { s.out.Status(status) })
	s.afterOwn(before)
	return nil
}

func (s *sender) sayError(text string) error {
	before := len(s.out.Bytes)
	s.out.Error(text)
	s.afterOwn(before)
	return nil
}

// refuseHeld answers a command with an error. Nothing of it was sent, and a transaction is refused
// with it.
func (s *sender) refuseHeld(ctx context.Context, text string) error {
	if err := s.asker.spoil(ctx); err != nil {
		return err
	}
	before := len(s.out.Bytes)
	s.client.Refuse(text, s.out)
	s.client.Transaction.Abort()
	s.afterOwn(before)
	return nil
}

// discard throws the current frame away, as the session does.
func (s *sender) discard(answer func(words [][]byte)) error {
	before := len(s.out.Bytes)
	err := s.session.discard(answer)
	s.afterOwn(before)
	return err
}
