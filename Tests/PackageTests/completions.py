"""Scripts that print what a shell offers. Their arguments: the completion's file, and a line."""

BASH = r"""
source "$1"
read -ra COMP_WORDS <<<"$2"
COMP_LINE=$2
COMP_POINT=${#2}
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
function=$(complete -p muster | sed -n 's/.*-F \([^ ]*\) .*/\1/p')
"$function" muster "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\n' "${COMPREPLY[@]}"
"""

FISH = r"""
source $argv[2]
complete --do-complete $argv[3] | string split --fields 1 \t
"""

# zsh completes at a terminal only: in a second shell, which marks what it would offer.
ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "PS1= ; fpath=(${1:h} \$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w shell 'compadd() {
  builtin compadd "$@"
  local -a offered
  builtin compadd -O offered "$@"
  print -rn -- "<<${(j:>><<:)offered}>>"
}; setopt no_always_last_prompt; LISTMAX=1000; print -r "rea""dy"'
zpty -r -m shell seen '*ready*'
zpty -n -w shell "$2"$'\t'
repeat 50; do
  zpty -r -t shell part && seen+=$part
  sleep 0.02
done
print -r -- ${seen//(<<|>>)/ }
"""
