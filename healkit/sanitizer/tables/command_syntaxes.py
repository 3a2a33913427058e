"""Commands and directives with secrets in them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from healkit.sanitizer.rule import SanitizerRule, Span, starts_word
from healkit.sanitizer.secret_names import Secrecy, word_set
from healkit.sanitizer.secret_values import QUOTED, hides, is_generated, names_a_secret
from healkit.sanitizer.value_shapes import ALGORITHM, is_reference, looks_like_token

_DIGIT_OR_SYMBOL = re.compile(r"[\d!@#$%^&*?~+=|<>]")


def unlike_reference(match: re.Match[str]) -> bool:
    """Refuse a variable or a template in the secret's place."""
    return not is_reference(match["secret"])


def is_sure(found: str) -> bool:
    """Accept what is surely no other word: one with a digit or a symbol, or a generator's phrase."""
    return _DIGIT_OR_SYMBOL.search(found) is not None or is_generated(found)


def password(match: re.Match[str]) -> bool:
    """Accept what may be a password, and no name of one."""
    found = match["secret"]
    return hides(Secrecy.PASSWORD, "password", found, QUOTED) and not names_a_secret(found)


def sure_password(match: re.Match[str]) -> bool:
    """Accept a password that is no plain word: at these places stand other words as well."""
    found = match["secret"]
    return password(match) and is_sure(found) and ALGORITHM.match(found) is None


#: Options by program; the secret follows, behind blanks or, in a list of arguments, what is between them. Of a line, so
#: many characters behind the program are read.
_LINE_CHARS = 240
_GAP = r"[ =]{1,8}"
_REST = r"[\"']?(?P<secret>[^\s\"'-][^\s\"']{2,256})"
_USER = r"[\"']?[^\s:\"'$-][^\s:\"']{0,100}:"
_OPTIONS = {
    name: re.compile(f"(?:{option}){_REST}")
    for names, option in (
        ("curl wget", rf"\s(?:-[A-Za-z]{{0,8}}u|--user|--proxy-user|-U|-a|--auth)[ =]{{0,8}}{_USER}"),
        ("http https", rf"\s(?:-a|--auth){_GAP}{_USER}"),
        ("sshpass", r"\s-p[ =]{0,8}"),
        ("mysql mariadb mysqldump mysqladmin mysqlimport", r"\s-p(?=\S)"),
        ("docker podman nerdctl buildah helm oras", rf"\s(?:registry\s{{1,8}})?login\s[^\n]{{0,160}}?-(?:p|-password){_GAP}"),
        ("skopeo", rf"\s--(?:src-|dest-)?creds{_GAP}{_USER}"),
        ("mongo mongosh mongodump mongorestore mongoexport mongoimport snowsql psexec cqlsh useradd rdesktop cypher-shell ncftp tabcmd", rf"\s(?:-p|--password){_GAP}"),
        ("az", rf"\slogin\s[^\n]{{0,160}}?-(?:p|-password){_GAP}"),
        ("twine", rf"\supload\s[^\n]{{0,160}}?-(?:p|-password){_GAP}"),
        ("redis-cli valkey-cli", rf"\s(?:-a|--pass){_GAP}"),
        ("7z 7za rar unrar", r"\s-p(?=\S)"),
        ("zip unzip sqlcmd bcp isql tsql mosquitto_pub mosquitto_sub ipmitool", r"\s-P[ =]{0,8}"),
        ("ldapsearch ldapmodify ldapadd ldapwhoami ldappasswd ldapdelete", r"\s-w[ =]{0,8}"),
        ("openssl", rf"\s-(?:k|K|pass(?:in|out)?){_GAP}(?:pass:)?"),
        ("vault cargo wandb", r"\slogin\s{1,8}(?:token=)?(?=[^\s=]{8})"),
        ("htpasswd", r"\s-(?:\w*n\w*b\w*|\w*b\w*n\w*|\w*b\w*\s{1,8}\S{1,80})\s{1,8}\S{1,80}\s{1,8}"),
        ("ssh-keygen", r"\s-[NP][ =]{0,8}"),
        ("smbclient rpcclient", r"\s-U[ =]{0,8}[^\s%]{1,80}%"),
        ("etcdctl", rf"\s--user{_GAP}[^\s:]{{1,80}}:"),
        ("lftp", r"\s-u\s{1,8}[^,\s]{1,80},"),
        ("net", r"\suse\s[^\n]{0,120}?(?:/user:\S{1,80}\s{1,8}|\\\\[^\s\\]{1,80}\\\S{1,80}\s{1,8}(?=[^\s/*]))|\suser\s{1,8}\w{1,40}\s{1,8}(?=[^\s/*])"),
        ("rabbitmqctl", r"\s(?:add_user|change_password|authenticate_user)\s{1,8}[^\s-]\S{0,80}\s{1,8}"),
        ("xfreerdp wfreerdp xfreerdp3", r"\s/p:"),
        ("cmdkey", r"\s/pass:"),
        ("schtasks", rf"\s/rp{_GAP}"),
        ("plink pscp psftp", rf"\s-pw{_GAP}"),
        ("x11vnc", rf"\s-passwd{_GAP}"),
        ("wpa_passphrase radtest", r"\s[^\s-]\S{0,80}\s{1,8}"),
        ("pdftk", r"\s(?:user_pw|owner_pw|input_pw)\s{1,8}"),
        ("snmpwalk snmpget snmpset snmpbulkwalk", r"\s-[AXc][ =]{0,8}"),
        ("neo4j-admin", r"\sset-initial-password\s{1,8}"),
        ("rclone", r"\sobscure\s{1,8}"),
    )
    for name in names.split()
}  # fmt: skip
#: Programs that are called with words in the same place.
_SURE_ONLY = word_set(
    "7z 7za rar unrar zip unzip openssl vault cargo wandb net mongo psexec useradd ssh-keygen az http https rdesktop tabcmd "
    "ncftp wpa_passphrase radtest snmpwalk snmpget snmpset snmpbulkwalk rclone ipmitool rabbitmqctl"
)
_KEYWORDS = tuple(f"{name}{end}" for name in _OPTIONS for end in (" ", '"', "'"))
#: Between the arguments of a list in code: `["docker", "login", …]`; a line may go on behind a backslash.
_LIST_MARKS, _CONTINUED = str.maketrans("\"',[]", "     "), re.compile(r"\\\r?\n")


def program_argument(text: str, start: int, end: int) -> Span | None:
    """Find the password that a program is given as an argument, by the option that it has for it.

    The arguments stand on a command line, or in a list of texts in code.
    """
    program = text[start : end - 1].lower()
    if not starts_word(text, start):
        return None
    line = text[end - 1 : end + _LINE_CHARS]
    if text[end - 1] != " ":
        if text[end : end + 1] != ",":
            return None
        line = line.partition("]")[0].partition(")")[0].translate(_LIST_MARKS)
    if "\n" in line:
        line = _CONTINUED.sub(lambda match: " " * len(match[0]), line).partition("\n")[0]
    match = _OPTIONS[program].search(line)
    if (
        match is None
        or not unlike_reference(match)
        or (program in _SURE_ONLY and not is_sure(match["secret"]))
    ):
        return None
    begin = end - 1 + match.start("secret")
    if text[end - 1] != " " and text[begin - 1] not in "\"'":
        return None  # a variable in a list
    return begin, end - 1 + match.end("secret"), None


def argument_with_secret(arguments: Sequence[str]) -> tuple[int, int] | None:
    """Find the secret among the arguments of a program, as lists hold them: its position, and where it begins there."""
    program = arguments[0].rpartition("/")[2]
    if program.lower() not in _OPTIONS or any("\n" in each or '"' in each for each in arguments):
        return None
    command = " ".join((program, *arguments[1:]))
    found = program_argument(command, 0, len(program) + 1)
    if found is None:
        return None
    begin = 0
    for position, argument in enumerate((program, *arguments[1:])):
        if found[0] <= begin + len(argument):
            return position, found[0] - begin
        begin += len(argument) + 1
    return None


_PIPED = re.compile(
    r"(?:echo|printf)\s+(?:-\w\s+)?(?:[\"']%s(?:\\n)?[\"']\s+)?[\"']?(?P<secret>[^\s\"'$|<>][^\s\"'|<>]{3,256})[\"']?\s*\|[^|\n]{0,120}$"
)
_HERE = re.compile(r"\s{0,3}<<<\s{0,3}[\"']?(?P<secret>[^\s\"'$<>][^\s\"'<>]{3,256})")


def piped(text: str, start: int, end: int) -> Span | None:
    """Find the password that `echo` writes to a program's input, or that a here-string holds."""
    lowest = max(0, start - 300)
    line = max(lowest, text.rfind("\n", lowest, start) + 1)
    echo = max(text.rfind("echo ", line, start), text.rfind("printf ", line, start))
    match = _PIPED.match(text, echo, start) if echo >= 0 else _HERE.match(text, end)
    return None if match is None or not unlike_reference(match) else (*match.span("secret"), None)


COMMAND_SYNTAXES: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "command-password", "a password as a program's argument", "place",
        _KEYWORDS, locate=program_argument,
        caught=(
            "curl -s -u admin:‹w10› https://example.com", "curl https://example.com --user 'svc:‹w12›'", "sshpass -p ‹w10› ssh host", "mysql -u root -p‹w10› shop",
            "docker login -u me -p ‹w20› registry", "openssl rsa -passin pass:‹w8› -in k", "7z x -p‹w10› a.7z", "unzip -P ‹w10› a.zip", "ldapsearch -D cn=a -w ‹w10›", "vault login ‹w24›",
            "curl -sSfu jane:‹w10› https://example.com", "helm registry login -u=jane --password=‹w8› r.example.com", "['docker', 'login', '-u', 'jane', '-p', '‹w8›']",
            "ipmitool -I lanplus -H bmc -U root -P ‹w10› power on", "plink -ssh -pw ‹w10› host", "podman login \\\n  -u jane \\\n  -p ‹w10› quay.io", "https -a jane:‹a5›-‹a6›-‹a4›-‹a7› example.com/me",
            "rabbitmqctl change_password jane ‹w12›", "net use x: \\\\nas\\share ‹w9› /user:jane", "schtasks /create /ru jane /rp ‹w10›",
        ),
        survives=(
            "curl -u $USER:$PASS https://example.com", "curl -o out https://example.com:8080/x", "curl -u admin https://example.com", "mysql -u root -p shop",
            "sshpass -p $PW ssh host", "mysql -P 3306 db", "docker login -u me", "vault login userpass", "zip -r out.zip folder", "mkdir -p a/b",
            '["docker", "run", "-p", "8080:80"]', "docker run -p 8080:80 image", "helm login page", "net user list", "rabbitmqctl add_user jane", "the https -a option", "['docker', 'login', '-u', name, '-p', password]", "az login --use-device-code",
        ),
    ),
    SanitizerRule(
        "command-password-pass", "a password behind `pass:`", "place", ("-pass",),
        r"-pass(?:in|out)?\s{1,3}pass:[\"']?(?P<secret>[^\s\"'-][^\s\"']{2,256})", check=unlike_reference,
        caught=("-passin pass:‹w8› -in k",), survives=("-passin env:PW",),
    ),
    SanitizerRule(
        "piped-password", "a password that is written to a program's input", "place",
        ("--password-stdin", "sudo -s", "--passphrase-fd", "--with-token", "--pass-stdin", "passwd --stdin", "chpasswd"), locate=piped,
        caught=("echo ‹w10› | docker login -u x --password-stdin", 'echo "‹w10›" | sudo -S ls', "gh auth login --with-token <<< ‹w20›"),
        survives=("echo $PW | docker login --password-stdin", "sudo -S ls", "cat token | gh auth login --with-token"),
    ),
    SanitizerRule(
        "config-directive", "a password behind a directive of a settings file", "place",
        ("requirepass", "masterauth", "bindpw", "rootpw", "storepass", "keypass", "key-string", "snmp-server community", "enable secret", "enable password", " password 0 ", " password 7 ", " secret 5 ", " secret 9 ", "auth-pass ", "rocommunity", "rwcommunity", "trapcommunity"),
        r"(?i)\s?(?:requirepass|masterauth|bindpw|rootpw|storepass|keypass|key-string(?:\s\d)?|r[ow]community6?|trapcommunity|snmp-server community|enable (?:secret|password)(?:\s\d)?|(?:password [07]|secret [59])|auth-pass \S{1,80})"
        r"[ \t:=]{1,12}[\"']?(?P<secret>[^\s\"'<>(){}]{2,255}[^\s\"'<>(){};,])(?=[\s\"';,]|$)",
        check=lambda match: unlike_reference(match) and is_sure(match["secret"]) and not names_a_secret(match["secret"]),
        caught=("requirepass ‹w12›", "snmp-server community ‹w14› RO", "enable secret 5 $1$‹w22›", "username admin password 0 ‹w10›", "-storepass ‹w10›", "rwcommunity ‹w12› 10.0.0.0/8", "masterauth ‹a5›-‹a6›-‹a4›-‹a7›"),
        survives=("requirepass is not set", "keypass == None", "storepass $PW"),
    ),
    SanitizerRule(
        "written-secret", "a secret that a shell writes into a file whose name says what it is", "place", ("echo ", "printf "),
        r"(?:echo|printf)\s+(?:-\w\s+)?(?:[\"']%s(?:\\n)?[\"']\s+)?(?P<q>[\"']?)(?P<secret>[^\s\"'$|<>]{6,256})(?P=q)\s{0,3}>{1,2}\s{0,3}[^\s;|&]{0,120}?(?:pass(?:word|wd)?|secret|token|credential|api_?key|pgpass|netrc)",
        check=sure_password, caught=("echo ‹w12› > password.txt", 'printf "%s" "‹w24›" > /run/secrets/password'), survives=("echo done > token.log", "echo $PASSWORD > password.txt", "echo v1.2 > version"),
    ),
    SanitizerRule(
        "bundler-login", "the login of a gem server, as Bundler keeps it", "place", ("bundle_",),
        r"(?:BUNDLE_[A-Z0-9_]{2,80}__[A-Z]{2,12})[\"']?\s{0,3}[=:]\s{0,3}[\"']?(?P<secret>[^\s\"':;&$]{3,100}:[^\s\"';&$]{3,200})", check=unlike_reference,
        caught=("BUNDLE_GEMS__EXAMPLE__COM: ‹h8›:‹h8›", "export BUNDLE_GEMS__EXAMPLE__COM=\"jane:‹w12›\""), survives=("BUNDLE_PATH: vendor/bundle", "BUNDLE_MIRROR__HTTPS://RUBYGEMS__ORG/: http://localhost:9292"),
    ),
    SanitizerRule(
        "token-as-user", "a token as the user's name of a request, without a password", "place", ("curl ", "sonar.login", "sonar.token"),
        r"(?i)(?:curl\s[^\n|;&]{0,200}?(?:-u|--user)[ =]{1,3}[\"']?(?P<user>)(?=[^\s\"':]{8,200}:[\"']?(?:\s|$))|sonar\.(?:login|token)[\"'\s:=]{1,9})(?P<secret>[A-Za-z0-9_.+/!@#$%^*-]{8,200})", check=lambda match: unlike_reference(match) and looks_like_token(match["secret"]), stuck=True,
        caught=('curl -u "‹w24›:" https://example.com', "-Dsonar.login=‹h40›", 'sonar.token: "‹w32›"'), survives=('curl -u "jane:" https://example.com', "sonar.login=admin", "curl -u $TOKEN: https://example.com"),
    ),
)  # fmt: skip

#: Rule under which a program's argument is counted.
COMMAND_PASSWORD = next(rule for rule in COMMAND_SYNTAXES if rule.id == "command-password")
