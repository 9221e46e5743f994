# Completion of {{.Name}} for bash: source it, or put it into /etc/bash_completion.d.

{{.Function}}() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command='' words='' flags values files i
    COMPREPLY=()
    # bash takes --flag=value for three words.
    if [[ $cur == = ]]; then
        cur=''
    elif [[ $prev == = ]] && ((COMP_CWORD > 1)); then
        prev=${COMP_WORDS[COMP_CWORD-2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${COMP_WORDS[i]} != -* ]]; then
            command=${COMP_WORDS[i]}
            break
        fi
    done
    case $command in
    '')
        words='{{range $i, $c := .Commands}}{{if $i}} {{end}}{{$c.Name}}{{end}}'
        flags='{{names .Flags}}' values='{{values .Flags}}' files='{{files .Flags}}'
        ;;
{{- range .Commands}}
    {{.Name}})
        words='{{range $i, $w := .Words}}{{if $i}} {{end}}{{$w}}{{end}}'
        flags='{{names .Flags}}'
        values='{{values .Flags}}' files='{{files .Flags}}'
        ;;
{{- end}}
    *) return ;;
    esac
    local IFS=$'\n'
    if [[ " $files " == *" $prev "* ]]; then
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$cur"))
    elif [[ " $values " == *" $prev "* ]]; then
        return # only who types knows it
    elif [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "${flags// /$IFS}" -- "$cur"))
    else
        COMPREPLY=($(compgen -W "${words// /$IFS}" -- "$cur"))
    fi
}

complete -F {{.Function}} {{.Name}}
