package proxy

import (
	"context"

	"redlock-proxy/internal/resp"
	"redlock-proxy/proxy/track"
)

// inquire asks the upstream something for the proxy itself, on the client's connection,
// also where that was told to be silent.
func (f *forwarding) inquire(ctx context.Context, state track.State, talk func(context.Context) error) error {
	if err := state.CanAsk(); err != nil {
		return err
	}
	if err := f.relay.open(ctx); err != nil {
		return err
	}
	quieten, err := f.speakUp(ctx)
	if err != nil {
		return err
	}
	defer quieten()
	return talk(ctx)
}

// speakUp has a silent connection speak. quieten has it be silent again.
func (f *forwarding) speakUp(ctx context.Context) (quieten func(), err error) {
	again := ""
	switch f.relay.silence {
	case track.Speaking:
		return func() {}, nil
	case track.SilentOnce:
		again = replySkip
	case track.SilentFromNow:
		again = replyOff
	}
	_, err = f.put(ctx, "CLIENT", "REPLY", "ON")
	return func() { f.relay.send([]byte(again)) }, err
}

// put sends a command for the proxy itself and gives its whole reply, which is never
// empty.
func (f *forwarding) put(ctx context.Context, words ...string) ([]byte, error) {
	answers, err := f.putAll(ctx, [][]string{words})
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// putAll is put for several commands, which are sent together.
func (f *forwarding) putAll(ctx context.Context, commands [][]string) (answers [][]byte, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, inquiryTimeout, errNoAnswer)
	defer cancel()
	if err := f.relay.request(requestOf(commands), len(commands)); err != nil {
		return nil, err
	}
	err = f.attend(ctx, func(ctx context.Context) (err error) {
		answers, err = f.relay.response(ctx, len(commands))
		return err
	})
	return answers, err
}

func requestOf(commands [][]string) []byte {
	var request []byte
	for _, words := range commands {
		request = resp.AppendWords(request, words...)
	}
	return request
}
