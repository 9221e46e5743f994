#compdef {{.Name}}
# Completion of {{.Name}} for zsh: source it after compinit, or put it into a folder of fpath as _{{.Name}}.

{{.Function}}() {
    local context state state_descr line
    local -a commands
    typeset -A opt_args
    _arguments -C \
                {{zsh .Flags}} \
                '1:command:->command' \
                '*::argument:->argument'
    case $state in
    command)
        commands=(
{{- range .Commands}}
            {{described .}}
{{- end}}
        )
        _describe command commands
        ;;
    argument)
        case $words[1] in
{{- range .Commands}}
        {{.Name}})
            _arguments \
                {{zsh .Flags}}{{if .Words}} \
                '1:argument:({{range $i, $w := .Words}}{{if $i}} {{end}}{{$w}}{{end}})'{{end}}
            ;;
{{- end}}
        esac
        ;;
    esac
}

if [[ $funcstack[1] == _{{.Name}} ]]; then
    {{.Function}} "$@"
else
    compdef {{.Function}} {{.Name}}
fi
