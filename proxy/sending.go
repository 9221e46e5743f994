package proxy

import (
	"context"
	"errors"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/commands/command"
	"redlock-proxy/proxy/track"
	"redlock-proxy/proxy/upstream"
)

// sending is how far a session has come in sending what it has scanned, and what is answered where that is not sent. It belongs to the session's goroutine.
type sending struct {
	session *session // for what that does without an upstream, too: write, throw away
	relay   *relay
	asking  *asking
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
func (f *sending) count() int {
	f.client.Tracking.Used()
	f.relay.unnoticed = f.relay.silence != track.Speaking
	switch f.relay.silence {
	case track.Speaking:
		return 1
	case track.SilentOnce:
		f.relay.silence = track.Speaking
	}
	return 0
}

// passOn has the current frame forwarded, for so many answers.
func (f *sending) passOn(answers int) {
	f.passing, f.counted = true, answers
	f.plain += answers
}

// pass sends the bytes up to a place in the buffer, if they are not sent yet. Where there is no upstream,
// the commands in them are answered with the reason.
func (f *sending) pass(ctx context.Context, upTo int) error {
	from, plain, slot := f.in.start, f.plain, f.slot
	upTo = max(from, upTo)
	f.in.start, f.plain, f.slot = upTo, 0, nil
	for from < upTo && !f.dropping {
		if err := f.session.flush(); err != nil {
			return err
		}
		switch sent, err := f.relay.forward(ctx, f.in.buf[from:upTo], plain, slot, f.begun); {
		case err != nil:
			if slot != nil {
				plain++
			}
			return f.refuse(ctx, f.in.buf[from:upTo], plain, err)
		case sent:
			f.begun, f.rest = f.passing, 0
			return nil
		case f.begun:
			from = f.abandon(upTo)
		}
	}
	return nil
}

// abandon skips what remains of a frame that was sent in part, since the connection
// it went to has ended, and with that it was answered.
func (f *sending) abandon(upTo int) (from int) {
	f.begun = false
	if f.rest == 0 {
		f.dropping = true
		return upTo
	}
	return f.rest
}

// endFrame is told of the end of the current frame.
func (f *sending) endFrame() {
	switch {
	case f.dropping:
		f.in.skip()
	case f.begun && f.rest == 0: // else others that were scanned since end here
		f.rest = f.in.scanned
	}
	f.passing, f.dropping, f.counted = false, false, 0
}

// forgo awaits no answer to the current frame: no more of it is sent.
func (f *sending) forgo() {
	switch {
	case f.counted == 0:
	case f.begun && f.rest == 0:
		f.relay.forgo()
	case f.slot != nil:
		f.slot = nil
	default:
		f.plain--
	}
}

// refuse answers n commands with the reason why they cannot be forwarded, but one that frees a busy upstream with what that answers.
func (f *sending) refuse(ctx context.Context, commands []byte, n int, reason error) error {
	if n == 1 {
		if answer, done := f.freeUp(ctx, commands, reason); done {
			f.out.Raw(answer)
			return nil
		}
	}
	var failed *upstream.Error
	if !errors.As(reason, &failed) {
		return reason
	}
	for range n {
		f.out.Error(failed.Reply())
	}
	f.dropping = f.passing
	return nil
}

// sendWhole forwards the command that is held, on a connection with state.
func (f *sending) sendWhole(s track.Slot) error { return f.sendFrame(s, f.in.chunk()) }

// sendFrame sends it, or another command in its place.
func (f *sending) sendFrame(s track.Slot, frame []byte) error {
	if err := f.session.flush(); err != nil {
		return err
	}
	f.relay.count(1, nil)
	if !f.relay.follow(s) {
		return errOver
	}
	f.relay.send(frame)
	return nil
}

// sendFollowed is sendFrame for a command that the client may want no answer to.
func (f *sending) sendFollowed(s track.Slot, frame []byte) error {
	if f.count() > 0 {
		return f.sendFrame(s, frame)
	}
	f.relay.unheard(s)
	f.relay.send(frame)
	return nil
}

// sendHello sends another HELLO in the place of the command that is held.
func (f *sending) sendHello(words [][]byte) error {
	if err := f.session.flush(); err != nil {
		return err
	}
	return f.sendFollowed(track.SlotFor("hello", words, len(words)), requestOf([][]string{syntax.Strings(words)}))
}

// afterOwn takes back the reply where the client asked for silence.
func (f *sending) afterOwn(before int) {
	if f.relay.silence == track.Speaking {
		return
	}
	f.out.TakeBack(before)
	if f.relay.silence == track.SilentOnce {
		f.relay.silence = track.Speaking
		f.relay.send([]byte(greeting)) // the upstream, too, keeps silent once
	}
}

// say answers a command with a status, sayError with an error.
func (f *sending) say(status string) error {
	before := len(f.out.Bytes)
	f.client.Answer(f.out, func() { f.out.Status(status) })
	f.afterOwn(before)
	return nil
}

func (f *sending) sayError(text string) error {
	before := len(f.out.Bytes)
	f.out.Error(text)
	f.afterOwn(before)
	return nil
}

// refuseHeld answers a command with an error. Nothing of it was sent, and a transaction is refused with it.
func (f *sending) refuseHeld(ctx context.Context, text string) error {
	if err := f.asking.spoil(ctx); err != nil {
		return err
	}
	before := len(f.out.Bytes)
	f.client.Refuse(text, f.out)
	f.client.Transaction.Abort()
	f.afterOwn(before)
	return nil
}

// discard throws the current frame away, as the session does.
func (f *sending) discard(answer func(words [][]byte)) error {
	before := len(f.out.Bytes)
	err := f.session.discard(answer)
	f.afterOwn(before)
	return err
}
