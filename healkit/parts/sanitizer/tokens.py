"""Token formats of services, known by their prefix.

The prefix, the alphabet and the least length of what follows are the providers' own. A prefix that a program's names
may begin with too (`prf_`, `web_`) must be followed by what no words make up.
"""

from __future__ import annotations

import base64
import re

from healkit.parts.sanitizer.rule import JUDGED_CHARS, SanitizerRule, Span, starts_word
from healkit.parts.sanitizer.secret_values import looks_like_token


def _mixed(match: re.Match[str]) -> bool:
    return looks_like_token(match[0].rpartition(".")[2])


CLOUD_TOKENS: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "aws-access-key", "AWS access key id", "token", ("akia", "asia", "abia", "acca", "a3t"),
        r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9_])",
        stuck=True, caught=("AKIA‹t16›", "aws_access_key_id = ASIA‹t16›"), survives=("ASIAPACIFICREGIONALOFFICES", "AKIA", "Asia/Tokyo"),
    ),
    SanitizerRule(
        "aws-bedrock-key", "Amazon Bedrock API key", "token", ("absk", "bedrock-api-key-"),
        r"(?:ABSK[A-Za-z0-9+/]{100,280}={0,2}|bedrock-api-key-[A-Za-z0-9+/]{20,4096}={0,2})",
        caught=("ABSK‹b109›",), survives=("ABSKEWED", "bedrock-api-key-rotation"),
    ),
    SanitizerRule(
        "aws-mws-token", "Amazon MWS token", "token", ("amzn.mws.",), r"amzn\.mws\.[0-9a-f-]{32,40}",
        caught=("amzn.mws.‹h8›-‹h4›-‹h4›-‹h4›-‹h12›",), survives=("amzn.mws.documentation",),
    ),
    SanitizerRule(
        "gcp-api-key", "Google API key", "token", ("aiza",), r"AIza[0-9A-Za-z_-]{33,45}",
        stuck=True, caught=("AIza‹s35›", "?key=AIza‹s35›&q=x"), survives=("AIzawa", "Aizawa Shouta"),
    ),
    SanitizerRule(
        "gcp-oauth-token", "Google OAuth access or refresh token", "token", ("ya29.", "1//0", "4/0a"),
        r"(?:ya29\.[0-9A-Za-z_-]{20,1024}|1//0[0-9A-Za-z_-]{30,512}|4/0A[0-9A-Za-z_-]{30,512})",
        caught=("ya29.‹s60›", "1//0‹s60›"), survives=("ya29. is a prefix", "1//0 divides by zero"),
    ),
    SanitizerRule(
        "gcp-client-secret", "Google OAuth client secret", "token", ("gocspx-",), r"GOCSPX-[0-9A-Za-z_-]{24,64}",
        caught=("GOCSPX-‹s28›",), survives=("GOCSPX-prefix",),
    ),
    SanitizerRule(
        "azure-client-secret", "Microsoft Entra client secret", "token", ("q~",), r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}",
        before=(4,), caught=("‹w3›8Q~‹s34›",), survives=("FAQ~ish", "1Q~2020"),
    ),
    SanitizerRule(
        "azure-devops-token", "Azure DevOps personal access token", "token", ("azdo",), r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}",
        before=(76,), caught=("‹w76›AZDO‹w4›",), survives=("AZDO pipeline",),
    ),
    SanitizerRule(
        "alibaba-access-key", "Alibaba Cloud access key id", "token", ("ltai",), r"LTAI[A-Za-z0-9]{12,24}+(?![A-Za-z0-9_])",
        check=lambda match: any(c.isdigit() for c in match[0]), caught=("LTAI‹w20›",), survives=("LTAILORED",),
    ),
    SanitizerRule(
        "tencent-secret-id", "Tencent Cloud secret id", "token", ("akid",), r"AKID[A-Za-z0-9]{28,40}",
        check=lambda match: any(c.isdigit() for c in match[0]), caught=("AKID‹w32›",), survives=("AKIDs",),
    ),
    SanitizerRule(
        "digitalocean-token", "DigitalOcean token", "token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[opr]_v1_[a-f0-9]{40,80}",
        stuck=True, caught=("dop_v1_‹h64›", "doo_v1_‹h64›", "dor_v1_‹h64›"), survives=("dop_v1_token",),
    ),
    SanitizerRule(
        "heroku-token", "Heroku API key", "token", ("hrku-",), r"HRKU-[A-Za-z0-9_-]{36,80}",
        caught=("HRKU-AA‹s58›", "HRKU-‹h8›-‹h4›-‹h4›-‹h4›-‹h12›"), survives=("HRKU-prefixed keys",),
    ),
    SanitizerRule(
        "cloudflare-token", "Cloudflare token or origin CA key", "token", ("v1.0-", "cfut_", "cfat_", "cfk_"),
        r"(?:v1\.0-[a-f0-9]{24}-[a-f0-9]{100,160}|cf(?:ut|at|k)_[A-Za-z0-9_-]{32,80})",
        caught=("v1.0-‹h24›-‹h146›", "cfut_‹w40›"), survives=("v1.0-beta", "v1.0-deadbeef"),
    ),
    SanitizerRule(
        "vercel-token", "Vercel token", "token", ("vcp_", "vci_", "vca_", "vcr_", "vck_"), r"vc[piark]_[A-Za-z0-9_-]{24,80}",
        caught=("vcp_‹w56›", "vck_‹w56›"), survives=("vcp_count",),
    ),
    SanitizerRule(
        "netlify-token", "Netlify personal access token", "token", ("nfp_", "nfc_", "nfo_"), r"nf[pco]_[A-Za-z0-9]{32,64}",
        caught=("nfp_‹w36›",), survives=("nfp_total",),
    ),
    SanitizerRule(
        "flyio-token", "Fly.io token", "token", ("fo1_", "fm1a_", "fm1r_", "fm2_"), r"(?:fo1_[\w-]{32,64}|fm(?:1[ar]|2)_[A-Za-z0-9+/_-]{60,4096}={0,3})",
        caught=("fo1_‹s43›", "fm2_‹b120›"), survives=("fm2_gain",),
    ),
    SanitizerRule(
        "render-token", "Render or Scalingo token", "token", ("rnd_", "tk-us-"), r"(?:rnd_[A-Za-z0-9]{24,64}|tk-us-[\w-]{40,64})",
        caught=("rnd_‹w32›", "tk-us-‹s48›"), survives=("rnd_seed", "rnd_generator_for_the_initial_state"), check=lambda m: any(c.isdigit() for c in m[0]),
    ),
    SanitizerRule(
        "vault-token", "HashiCorp Vault token", "token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[\w-]{20,512}",
        caught=("hvs.‹s90›", "hvb.‹s140›", "hvs.CAES‹s24›"), survives=("hvs.prefix",),
    ),
    SanitizerRule(
        "vault-token-legacy", "HashiCorp Vault token, before 1.10", "token", ("s.",), r"s\.[A-Za-z0-9]{24}(?![\w.(])", check=_mixed,
        caught=("s.‹w24›",), survives=("s.getUserAuthenticationName", "s.replace('a', 'b')"),
    ),
    SanitizerRule(
        "terraform-token", "Terraform Cloud token", "token", ("atlasv1",), r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,90}", before=(15,),
        caught=("‹w14›.atlasv1.‹s67›",), survives=("the atlasv1. part",),
    ),
    SanitizerRule(
        "pulumi-token", "Pulumi access token", "token", ("pul-",), r"pul-[a-f0-9]{40}", caught=("pul-‹h40›",), survives=("pul-request",),
    ),
    SanitizerRule(
        "openshift-token", "OpenShift token", "token", ("sha256~",), r"sha256~[\w-]{40,50}",
        caught=("sha256~‹s43›",), survives=("sha256~", "sha256:‹h64›"),
    ),
    SanitizerRule(
        "doppler-token", "Doppler token", "token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
        r"dp\.(?:pt|ct|sa|scim|audit|st(?:\.[\w-]{1,40})?)\.[A-Za-z0-9]{40,48}",
        caught=("dp.pt.‹w43›", "dp.st.prd.‹w43›"), survives=("dp.pt.name",),
    ),
    SanitizerRule(
        "onepassword-token", "1Password service account token or secret key", "token", ("ops_eyj", "a3-"),
        r"(?:ops_eyJ[A-Za-z0-9+/_-]{60,4096}={0,3}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3})",
        caught=("ops_eyJ‹w250›", "A3-‹u6›-‹u6›-‹u5›-‹u5›-‹u5›-‹u5›"), survives=("A3-SIZED-PAPER", "ops_eyJ"),
    ),
    SanitizerRule(
        "age-secret-key", "age secret key", "token", ("age-secret-key-1", "age-plugin-"), r"AGE-(?:SECRET-KEY-1|PLUGIN-[A-Z0-9]{1,20}-1)[A-Z0-9]{50,70}",
        caught=("AGE-SECRET-KEY-1‹u58›",), survives=("AGE-SECRET-KEY-1 marks a key", "age1‹l58›"),
    ),
    SanitizerRule(
        "infisical-token", "Infisical token", "token", ("st.",), r"st\.[a-f0-9-]{24,36}\.[a-f0-9]{32}\.[a-f0-9]{32}",
        caught=("st.‹h24›.‹h32›.‹h32›",), survives=("st.example.com",),
    ),
    SanitizerRule(
        "planetscale-token", "PlanetScale password or token", "token", ("pscale_",), r"pscale_(?:pw|tkn|oauth)_[\w=.-]{32,80}",
        caught=("pscale_pw_‹s43›", "pscale_tkn_‹s43›", "pscale_oauth_‹s43›"), survives=("pscale_pw_reset",),
    ),
    SanitizerRule(
        "supabase-token", "Supabase token or secret key", "token", ("sbp_", "sb_secret_"), r"(?:sbp_(?:oauth_|v0_)?[a-f0-9]{40}|sb_secret_[\w-]{20,64})",
        caught=("sbp_‹h40›", "sb_secret_‹s31›"), survives=("sbp_table", "sb_publishable_‹s31›"),
    ),
    SanitizerRule(
        "neon-upstash-token", "Neon or Confluent Cloud key", "token", ("napi_", "cflt"), r"(?:napi_[a-z0-9]{48,72}|cflt[A-Za-z0-9+/]{56,64})",
        caught=("napi_‹l64›", "cflt‹b60›"), survives=("napi_status napi_create_function",),
    ),
    SanitizerRule(
        "clickhouse-key", "ClickHouse Cloud secret key", "token", ("4b1d",), r"4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])",
        check=lambda match: not re.fullmatch(r"[0-9a-f]+", match[0]), caught=("4b1d‹w38›",), survives=("4b1d‹h36›", "4b1d"),
    ),
    SanitizerRule(
        "databricks-token", "Databricks token", "token", ("dapi", "dose", "dkea", "dsapi"), r"d(?:api|ose|kea|sapi)[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])",
        caught=("dapi‹h32›", "dapi‹h32›-2"), survives=("dapi_version", "doses of 5"),
    ),
    SanitizerRule(
        "grafana-token", "Grafana key or token", "token", ("glc_", "glsa_", "eyjrijoi"),
        r"(?:glc_[A-Za-z0-9+/_-]{32,400}={0,3}|glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|eyJrIjoi[A-Za-z0-9+/_-]{40,400}={0,3})",
        caught=("glc_‹b60›", "glsa_‹w32›_‹h8›", "eyJrIjoi‹w80›"), survives=("glc_width", "glsa_prefix"),
    ),
    SanitizerRule(
        "newrelic-key", "New Relic key", "token", ("nrak-", "nrii-", "nrjs-", "nriq-", "nrra-", "nrsp-", "nral"),
        r"(?:NR(?:AK|II|IQ|RA|SP|JS)-[A-Za-z0-9_-]{19,40}|[A-Za-z0-9]{36}NRAL)", before=(0, 36),
        caught=("NRAK-‹u27›", "NRII-‹s32›", "NRJS-‹h19›", "‹h36›NRAL"), survives=("NRAK-keys are long",),
    ),
    SanitizerRule(
        "sentry-token", "Sentry token", "token", ("sntrys_", "sntryu_", "sntrya_", "sntryi_"), r"sntry[suai]_[A-Za-z0-9+/_=-]{40,512}",
        caught=("sntrys_eyJ‹w120›_‹b43›", "sntryu_‹h64›"), survives=("sntryu_prefix",),
    ),
    SanitizerRule(
        "dynatrace-token", "Dynatrace token", "token", ("dt0",), r"dt0[a-z]\d\d\.[A-Za-z0-9]{8,24}\.[A-Za-z0-9]{40,64}",
        caught=("dt0c01.‹u24›.‹u64›", "dt0s16.‹u8›.‹u64›"), survives=("dt0c01.", "dt0 = 0.1"),
    ),
    SanitizerRule(
        "honeycomb-key", "Honeycomb or Logfire key", "token", ("hcaik_", "hcxik_", "hcbik_", "hcamk_", "pylf_v1_"),
        r"(?:hc[abcx](?:ik|mk|lk)_[a-z0-9]{40,70}|pylf_v\d_[a-z]{2}_[A-Za-z0-9]{32,64})",
        caught=("hcaik_‹l58›", "pylf_v1_us_‹w43›"), survives=("pylf_v1_us_key",),
    ),
    SanitizerRule(
        "launchdarkly-key", "LaunchDarkly or Statsig key", "token", ("sdk-", "mob-", "api-", "secret-"),
        r"(?:sdk|mob|api)-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}|secret-[A-Za-z0-9]{36,48}+(?![\w-])",
        check=lambda match: any(c.isdigit() for c in match[0]),
        caught=("sdk-‹h8›-‹h4›-‹h4›-‹h4›-‹h12›", "secret-‹w43›"), survives=("api-gateway", "sdk-core", "secret-manager"),
    ),
    SanitizerRule(
        "octopus-key", "Octopus Deploy API key", "token", ("api-",), r"API-[A-Z0-9]{24,36}+(?![\w-])", check=lambda m: any(c.isdigit() for c in m[0]),
        caught=("API-‹u26›",), survives=("API-REFERENCE", "API-2024"),
    ),
    SanitizerRule(
        "authress-key", "Authress access key or 42 client secret", "token", ("sc_", "ext_", "scauth_", "authress_", "s-s4t2"),
        r"(?:(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}|s-s4t2(?:ud|af)-[a-f0-9]{64})",
        caught=("sc_‹l12›.‹l4›.acc_‹l16›.‹b60›", "s-s4t2ud-‹h64›"), survives=("ext_name", "sc_value.base.acc"),
    ),
    SanitizerRule(
        "maxmind-key", "MaxMind licence key", "token", ("_mmk",), r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", before=(36,),
        caught=("‹w6›_‹w29›_mmk",), survives=("x_mmk",),
    ),
)  # fmt: skip


# Code hosts, registries, builds and models.


def _digit(match: re.Match[str]) -> bool:
    return any(character.isdigit() for character in match[0])


def _behind_prefix(match: re.Match[str]) -> bool:
    """Require a token behind the prefix: `sk-learn-contrib` and `api_key_for_the_user` hold words."""
    return looks_like_token(match["body"])


def _one_run(match: re.Match[str]) -> bool:
    """Require a long stretch without separators in it that no words make up."""
    return any(map(looks_like_token, _RUN.findall(match["body"])))


_RUN = re.compile(r"[A-Za-z0-9]{24,}")


_VENDOR, _VENDOR_LEAST, _PUBLIC = re.compile(r"[a-z][a-z0-9]{1,19}$"), 2, re.compile(r"pk$|pub")
_BODY = re.compile(r"[A-Za-z0-9_=-]{16,256}")


def _prefixed(text: str, start: int, end: int) -> Span | None:
    """Find `vendor_live_…`, the form in which most services have named their tokens since GitHub did."""
    body = _BODY.match(text, end)
    if body is None:
        return None
    if not looks_like_token(body[0]):
        judged = min(body.end(), end + JUDGED_CHARS)
        return judged, judged, None
    vendor = _VENDOR.search(text, max(0, start - 21), start)
    begin = vendor.start() if vendor else start
    while begin < start and not starts_word(
        text, begin
    ):  # behind an escape or a colour, which end in a letter
        begin += 1
    if start - begin < _VENDOR_LEAST or _PUBLIC.match(text, begin, start):
        return None
    return begin, body.end(), None


CODE_TOKENS: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "github-token", "GitHub token", "token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{40,255})",
        stuck=True, caught=("ghp_‹w36›", "gho_‹w36›", "ghu_‹w36›", "ghs_‹w36›", "ghr_‹w76›", "github_pat_‹w22›_‹w59›", "x:ghp_‹w36›@github.com"),
        survives=("ghp_ tokens", "github_pat_ is a prefix", "ghs_and_then"),
    ),
    SanitizerRule(
        "gitlab-token", "GitLab token", "token",
        ("glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-", "glffct-", "glrtr-", "glwt-", "gr1348941"),
        r"(?:gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[\w.-]{18,320}|GR1348941[\w-]{20,40})",
        check=_digit, stuck=True, caught=("glpat-‹s20›", "glrt-t1_‹s27›", "glcbt-64_‹s20›", "glptt-‹h40›", "GR1348941‹s20›", "gloas-‹s64›", "glagent-‹s50›"),
        survives=("glpat-prefixed", "glft-and-other-prefixes"),
    ),
    SanitizerRule(
        "gitlab-session", "GitLab session", "place", ("_gitlab_session=",), r"_gitlab_session=(?P<secret>[0-9a-z]{24,64})",
        caught=("_gitlab_session=‹h32›",), survives=("_gitlab_session=x",),
    ),
    SanitizerRule(
        "atlassian-token", "Atlassian API token or Bitbucket app password", "token", ("atbb", "atatt3", "atctt3", "astt"),
        r"AT(?:BB[A-Za-z0-9]{24,40}|[AC]TT3[A-Za-z0-9_+/=-]{20,400})|ASTT[A-Za-z0-9_-]{40,200}", check=_digit,
        caught=("ATBB‹w32›", "ATATT3‹s180›=‹H8›"), survives=("ATBB", "ATATT3 tokens"),
    ),
    SanitizerRule(
        "sourcegraph-token", "Sourcegraph token", "token", ("sgp_",), r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}",
        caught=("sgp_‹h16›_‹h40›", "sgp_‹h40›"), survives=("sgp_name",),
    ),
    SanitizerRule(
        "npm-token", "npm token", "token", ("npm_", "_authtoken="), r"npm_[A-Za-z0-9]{34,64}",
        stuck=True, caught=("npm_‹w36›", "//registry.npmjs.org/:_authToken=npm_‹w36›"), survives=("npm_config_registry", "npm_lifecycle_event"),
    ),
    SanitizerRule(
        "pypi-token", "PyPI or TestPyPI token", "token", ("pypi-age",), r"pypi-AgE[\w-]{40,1024}",
        stuck=True, caught=("pypi-AgEIcHlwaS5vcmc‹s120›", "pypi-AgENdGVzdC5weXBpLm9yZw‹s100›"), survives=("pypi-agent", "pypi-AgE"),
    ),
    SanitizerRule(
        "rubygems-token", "RubyGems, crates.io, Clojars or NuGet token", "token", ("rubygems_", "cio", "clojars_", "oy2"),
        r"(?:rubygems_[a-f0-9]{40,64}|cio[A-Za-z0-9]{32}(?![\w])|CLOJARS_[a-z0-9]{60}|oy2[a-z0-9]{43}(?![\w]))", check=_digit,
        caught=("rubygems_‹h48›", "cio‹w32›", "CLOJARS_‹l60›", "oy2‹l43›"), survives=("rubygems_version", "cioran", "oy2 is short"),
    ),
    SanitizerRule(
        "docker-token", "Docker Hub token", "token", ("dckr_pat_", "dckr_oat_"), r"dckr_[po]at_[A-Za-z0-9_-]{24,64}",
        stuck=True, caught=("dckr_pat_‹s27›", "dckr_oat_‹s32›"), survives=("dckr_pat_ prefix",),
    ),
    SanitizerRule(
        "artifactory-token", "JFrog Artifactory key or reference token", "token", ("akc", "cmvmd", *(f"ap{digit}" for digit in "0123456789")), r"(?:(?:AKC|AP[0-9])[a-z0-9][A-Za-z0-9]{9,80}|cmVmd[A-Za-z0-9]{56,64}+)(?![A-Za-z0-9])",
        caught=("AKCp‹w69›", "cmVmd‹w59›"), survives=("AKC registered", "cmVmd"),
    ),
    SanitizerRule(
        "circleci-token", "CircleCI, Buildkite or Travis token", "token", ("cciat_", "ccipat_", "ccipra", "bkua_", "bkaj_", "bkct_"),
        r"(?:CCI(?:PAT|PRJ|AT)_[A-Za-z0-9_]{30,80}|bk(?:ua|aj|ct)_[A-Za-z0-9]{32,64})",
        caught=("CCIPAT_‹w22›_‹h40›", "bkua_‹h40›"), survives=("bkua_name",),
    ),
    SanitizerRule(
        "sonar-snyk-token", "SonarQube or Snyk token", "token", ("squ_", "sqp_", "sqa_", "sqb_", "snyk_"), r"(?:sq[upab]_[a-f0-9]{40}|snyk_[a-z]{3,5}\.[A-Za-z0-9_.-]{32,120})",
        caught=("squ_‹h40›", "sqp_‹h40›", "snyk_uat.‹s60›"), survives=("squ_name",),
    ),
    SanitizerRule(
        "harness-token", "Harness token", "token", ("pat.", "sat."), r"(?:pat|sat)\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}",
        caught=("pat.‹s22›.‹h24›.‹w20›",), survives=("pat.example.com",),
    ),
    SanitizerRule(
        "prefect-infracost-token", "Prefect, Infracost or ReadMe token", "token", ("pnu_", "pnb_", "ico-", "rdme_"), r"(?:pn[ub]_[A-Za-z0-9]{36}|ico-[A-Za-z0-9]{32}|rdme_[a-z0-9]{60,80})",
        check=_digit, caught=("pnu_‹w36›", "ico-‹w32›", "rdme_‹l70›"), survives=("ico-small", "pnu_x"),
    ),
    SanitizerRule(
        "anthropic-key", "Anthropic API key", "token", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{20,256}",
        caught=("sk-ant-api03-‹s93›AA", "sk-ant-admin01-‹s93›AA", "sk-ant-oat01-‹s93›AA"), survives=("sk-ant-...", "sk-ant-hill"),
    ),
    SanitizerRule(
        "openai-key", "OpenAI key, and others of that form (OpenRouter, DeepSeek, Moonshot)", "token", ("sk-", "sess-"),
        r"(?:sk-(?!ant-)(?:(?:proj|svcacct|admin|None|service|or-v1|lf|live|test|user)-)?|sess-)(?P<body>[A-Za-z0-9_-]{18,256})", check=_behind_prefix,
        caught=("sk-‹w20›T3BlbkFJ‹w20›", "sk-proj-‹s74›T3BlbkFJ‹s74›", "sk-‹h32›", "sk-or-v1-‹h64›"), survives=("sk-learn", "sk-ecdsa-sha2-nistp256", "sk-toggleable__content-pre", "task-scheduler-configuration"),
    ),
    SanitizerRule(
        "huggingface-token", "Hugging Face token", "token", ("hf_", "api_org_"), r"(?:hf_|api_org_)[A-Za-z0-9]{30,64}+(?![\w])",
        stuck=True, caught=("hf_‹w34›", "api_org_‹w34›"), survives=("hf_hub_download", "hf_transformersautomodelconfig"),
    ),
    SanitizerRule(
        "model-key", "key of a model provider (Groq, Replicate, Perplexity, xAI, Cerebras, Fireworks, NVIDIA, Tavily, LangSmith …)", "token",
        ("gsk_", "r8_", "pplx-", "xai-", "csk-", "fw_", "nvapi-", "tvly-", "lsv2_", "jina_", "pcsk_", "voyage", "pa-", "e2b_", "tgp_v1_", "bb_live_", "fc-", "exa_"),
        r"(?:gsk_|r8_|pplx-|xai-|csk-|fw_|nvapi-|tvly-(?:dev-|prod-)?|lsv2_(?:pt|sk)_|jina_|pcsk_|pa-|e2b_|tgp_v1_|bb_live_|(?<![0-9a-f])fc-|exa_)(?P<body>[A-Za-z0-9_-]{24,200})",
        check=_behind_prefix, caught=("gsk_‹w52›", "r8_‹w37›", "pplx-‹w48›", "xai-‹w80›", "nvapi-‹s64›", "tvly-‹w32›", "lsv2_pt_‹h32›_‹h10›", "jina_‹w60›"),
        survives=("fw_update_and_restart_the_device", "pa-", "fc-match", "8fbb14fc-f79f-429d-8cf2-4d9d5ac1bc04", "r8_unorm", "xai-explainability-for-classifiers"),
    ),
    SanitizerRule(
        "newer-token", "a token of a younger service (Resend, PostHog, Tailscale, Typeform, Apify, fal, LlamaCloud, Cohere, Fly, Depot …)", "token",
        ("re_", "pat-na1-", "pat-eu1-", "phx_", "phc_", "phs_", "tfp_", "flyv1_", "key-", "apify_api_", "fal_", "llx-", "co_", "b2_", "depot_", "vercel_blob_rw_",
         "prefect_", "tskey-", "sl.", "secret_", "gtma_", "ap_", "ops_", "xoxe-", "sk_", "fio-u-", "nfp_", "ntn_", "figd_", "lin_api_", "dop_", "eaag", "sq0csp-"),
        r"(?:re_|pat-(?:na|eu)1-|ph[xcs]_|tfp_|flyv1_|key-|apify_api_|fal_|llx-|co_|b2_|depot_(?:project_|org_|user_)?|vercel_blob_rw_|prefect_|tskey-(?:auth|api|client|scim)-"
        r"|sl\.|secret_|gtma_|ap_|ops_|xoxe-\d-|sk_|fio-u-|ntn_|figd_|lin_api_|EAAG|sq0csp-)(?P<body>[A-Za-z0-9_-]{24,300})",
        check=_one_run, caught=("re_‹w32›", "phx_‹w43›", "tskey-auth-‹w34›", "apify_api_‹w36›", "pat-na1-‹h32›", "key-‹h32›"),
        survives=("re_compile_all_the_patterns_of_2024", "key-value-store-for-sessions-v2", "co_consts_and_co_names_of_code1", "secret_manager_client_factory_v1beta1"),
    ),
    SanitizerRule(
        "wandb-key", "Weights & Biases, Comet or Pinecone key", "token", ("wandb_v1_", "pckey_"), r"(?:wandb_v1_|pckey_)[A-Za-z0-9_-]{32,120}",
        caught=("wandb_v1_‹w64›",), survives=("wandb_v1_run",),
    ),
    SanitizerRule(
        "prefixed-token", "a token whose prefix says that it is one", "token",
        ("_live_", "_test_", "_prod_", "_sandbox_", "_secret_", "_pat_", "_sk_", "-live-", "-prod-", "_aat_", "_sat_"), locate=_prefixed,
        caught=("acme_live_‹w32›", "duffel_test_‹s43›", "shippo_live_‹h40›", "sm_pat_‹w16›", "cal_live_‹h32›", "acme_secret_‹w24›", "\x1b[32macme_live_‹w32›\x1b[0m", "sent\\nacme_test_‹h40›"),
        survives=("load_test_configuration", "my_secret_santa_list", "test_token_expires_after_one_hour", "run_live_20240131", "pk_live_‹w24›"),
    ),
)  # fmt: skip


# Payment, messaging and office services.


def _no_words(match: re.Match[str]) -> bool:
    """Refuse names such as `test_writestr_extended_local_header_issue1202` for keys of a payment service."""
    return match[0].count("_") <= 3 and looks_like_token(match[0].partition("_")[2] or match[0])


def _snowflake(match: re.Match[str]) -> bool:
    """Check that the token begins with an account's id in base64, as Discord's do, or is one of three random parts."""
    first = match[0].partition(".")[0]
    if all(
        any(map(str.isdigit, part)) and not part.islower() for part in (first, match[0].rpartition(".")[2])
    ):
        return looks_like_token(first) and looks_like_token(match[0].rpartition(".")[2])
    try:
        return base64.b64decode(first + "=" * (-len(first) % 4), altchars=b"-_").isdigit()
    except ValueError:
        return False


def _numbered(match: re.Match[str]) -> bool:
    """Check that it is a number of twelve digits and a colon in base64, and bytes behind."""
    return re.match(rb"\d{12}:", base64.b64decode(match[0])) is not None


def _shaped_path(match: re.Match[str]) -> bool:
    parts = match["secret"].split("/", 12)[:12]
    return any(looks_like_token(part) or (part.isdigit() and len(part) >= 6) for part in parts)


#: Beginnings of the base64 of a number with many digits.
_SNOWFLAKES = tuple(
    sorted({base64.b64encode(str(number).encode()).decode().lower() for number in range(100, 1000)})
)

SERVICE_TOKENS: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "slack-token", "Slack token", "token", ("xoxb", "xoxp", "xoxa", "xoxr", "xoxs", "xoxo", "xoxe", "xoxc", "xoxd", "xapp-", "xwfp-"),
        r"(?:xox[a-z](?:\.xox[bp])?-[A-Za-z0-9%-]{10,512}|x(?:app|wfp)-[A-Za-z0-9-]{16,256})", check=_digit,
        stuck=True, caught=("xoxb-‹d12›-‹d13›-‹w24›", "xoxp-‹d12›-‹d12›-‹d13›-‹h32›", "xapp-1-A‹u10›-‹d13›-‹h64›", "xoxe.xoxp-1-‹w160›", "xoxd-‹w80›"),
        survives=("xoxb- tokens", "xoxo, Gossip Girl"),
    ),
    SanitizerRule(
        "webhook-url", "a webhook's address (Slack, Discord, Teams, Google Chat, Zapier, Make, IFTTT, n8n …)", "token",
        ("hooks.slack.com/", "/api/webhooks/", "webhook.office.com/", "hooks.zapier.com/", "hook.make.com", "hook.eu", "hook.us", "maker.ifttt.com/", "chat.googleapis.com/",
         "open.feishu.cn/", "oapi.dingtalk.com/", "qyapi.weixin.qq.com/", "events.pagerduty.com/integration/", "hooks.airtable.com", "logic.azure.com", "outlook.office.com/webhook"),
        r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|/api/webhooks/|webhook\.office\.com/webhookb2/|outlook\.office\.com/webhook/|hooks\.zapier\.com/hooks/|hook\.(?:[a-z0-9]+\.)?make\.com/"
        r"|maker\.ifttt\.com/(?:trigger/[\w-]{1,80}/(?:json/)?with/key|use)/|chat\.googleapis\.com/v1/spaces/|open\.feishu\.cn/open-apis/bot/v2/hook/|oapi\.dingtalk\.com/robot/send\?access_token="
        r"|qyapi\.weixin\.qq\.com/cgi-bin/webhook/send\?key=|events\.pagerduty\.com/integration/|hooks\.airtable\.com/workflows/|logic\.azure\.com(?::443)?/workflows/)(?P<secret>[\w@/.%?&=:+-]{8,1024})",
        check=_shaped_path,
        caught=("https://hooks.slack.com/services/T‹u8›/B‹u8›/‹w24›", "https://discord.com/api/webhooks/‹d18›/‹s68›", "https://hooks.zapier.com/hooks/catch/‹d7›/‹l7›/",
                "https://acme.webhook.office.com/webhookb2/‹h8›-‹h4›-‹h4›-‹h4›-‹h12›@‹h8›-‹h4›-‹h4›-‹h4›-‹h12›/IncomingWebhook/‹h32›/‹h8›-‹h4›-‹h4›-‹h4›-‹h12›"),
        survives=("https://hooks.slack.com/services/", "POST /api/webhooks/incoming", "https://chat.googleapis.com/v1/spaces/list"),
    ),
    SanitizerRule(
        "discord-token", "Discord bot token", "token", _SNOWFLAKES,
        r"[MNO][A-Za-z0-9_-]{22,29}\.[\w-]{6}\.[\w-]{27,45}+(?![\w.])", check=_snowflake,
        caught=("MTIzNDU2Nzg5MDEyMzQ1Njc4.‹s6›.‹s38›", "OTg3NjU0MzIxMDk4NzY1NDMy.‹s6›.‹s27›"), survives=("MTIzNDU2", "NdArrayBackedExtensionArray.values.shape"),
    ),
    SanitizerRule(
        "jira-token", "personal access token of Jira, Confluence or Bitbucket Data Center", "token", _SNOWFLAKES,
        r"[MNO][A-Za-z0-9+/]{43}(?![A-Za-z0-9+/=_.-])", check=_numbered, stuck=True,
        caught=("NDU2Nzg5MDEyMzQ1OrAB‹w24›", "/token/OTI2NjA3NjU1NTI2Oh2D‹w24›"), survives=("MTIzNDU2", "NDU2Nzg5MDEyMzQ1‹w28›"),
    ),
    SanitizerRule(
        "telegram-token", "Telegram bot token", "token", (":aa",), r"(?:bot)?(?P<secret>\d{8,10}:AA[A-Za-z0-9_-]{32,36}+)(?![\w])", before=(13, 12, 11, 10, 9, 8),
        caught=("‹d10›:AA‹s33›", "https://api.telegram.org/bot‹d9›:AA‹s33›/getMe"), survives=("12:AA:34:BB", "fe80::1:aa"),
    ),
    SanitizerRule(
        "stripe-key", "Stripe key or webhook secret", "token", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "sk_prod_", "rk_prod_", "ek_live_", "ek_test_"),
        r"(?:(?:sk|rk|ek)_(?:live|test|prod)_[A-Za-z0-9_]{10,256}|whsec_[A-Za-z0-9+/=]{24,256})",
        stuck=True, caught=("sk_live_‹w24›", "rk_test_‹w99›", "whsec_‹w32›"), survives=("pk_live_‹w24›", "sk_test_ keys", "whsec_header"),
    ),
    SanitizerRule(
        "square-token", "Square token", "token", ("eaaa", "sq0atp-", "sq0csp-", "sandbox-sq0"), r"(?:EAAA[\w-]{22,64}+|(?:sandbox-)?sq0(?:atp|csp|idb)-[\w-]{22,60}+)(?![\w-])",
        caught=("EAAA‹s60›", "sq0atp-‹s22›", "sq0csp-‹s43›"), survives=("sq0atp-prefix", "EAAA"),
    ),
    SanitizerRule(
        "facebook-token", "Facebook or Instagram access token", "token", ("eaa", "igqv", "igaa"), r"(?:EAA[A-Za-z0-9]{80,512}+|IG(?:QV|AA)[A-Za-z0-9_-]{60,512}+)(?![\w-])",
        check=_digit, caught=("EAACEdEose0cBA‹w150›", "IGQVJ‹w120›"), survives=("EAA member states", "EAAB"),
    ),
    SanitizerRule(
        "shopify-token", "Shopify token", "token", ("shpat_", "shpca_", "shppa_", "shpss_", "shptka_", "shpua_", "prtapi_"), r"(?:shp(?:at|ca|pa|ss|tka|ua)_|prtapi_)[a-zA-Z0-9]{28,64}", check=_digit,
        caught=("shpat_‹h32›", "shpss_‹h32›", "shppa_‹h32›"), survives=("shpat_prefix",),
    ),
    SanitizerRule(
        "payment-key", "key of a payment service (Flutterwave, Paystack, Razorpay, Braintree, PayPal, Adyen, Mollie, Lob, EasyPost, GoCardless)", "token",
        ("flwseck", "access_token$", "rzp_live_", "rzp_test_", "aqe", "live_", "test_", "ezak", "eztk"),
        r"(?:FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,40}(?:-X)?|access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}|rzp_(?:live|test)_[A-Za-z0-9]{14,40}|AQE[a-z][A-Za-z0-9+/=_-]{60,400}"
        r"|(?:live|test)_(?:[A-Za-z0-9]{30}|[a-f0-9]{35}|[A-Za-z0-9_-]{40})(?![\w-])|EZ[AT]K[A-Za-z0-9]{50,60})",
        check=_no_words, caught=("FLWSECK_TEST-‹h32›-X", "access_token$production$‹l16›$‹h32›", "rzp_live_‹w14›", "live_‹w30›", "live_‹h35›", "EZAK‹w54›"),
        survives=("live_dashboard", "test_the_user_can_log_in_with_a_name", "rzp_test_mode", "access_token$"),
    ),
    SanitizerRule(
        "plaid-token", "Plaid access token", "token", ("access-sandbox-", "access-development-", "access-production-", "public-production-"), r"(?:access|public)-(?:sandbox|development|production)-[0-9a-f-]{32,40}",
        caught=("access-production-‹h8›-‹h4›-‹h4›-‹h4›-‹h12›",), survives=("access-production-servers",),
    ),
    SanitizerRule(
        "twilio-key", "Twilio API key", "token", ("sk",), r"SK[0-9a-fA-F]{32}(?![\w])", caught=("SK‹h32›",), survives=("SK", "SKU 12345678"),
    ),
    SanitizerRule(
        "sendgrid-key", "SendGrid key", "token", ("sg.",), r"SG\.[A-Za-z0-9_=.-]{40,96}+(?![A-Za-z0-9_])", check=_digit, caught=("SG.‹s22›.‹s43›",), survives=("SG.example.com",),
    ),
    SanitizerRule(
        "mailgun-key", "Mailgun key", "token", ("key-", "pubkey-"), r"(?:pub)?key-[0-9a-f]{32}(?![\w])|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])", caught=("key-‹h32›",), survives=("key-value", "key-3ax6"),
    ),
    SanitizerRule(
        "mail-key", "key of a mail service (Mailchimp, Mandrill, Brevo, Resend, Loops, Postmark)", "token", ("-us", "xkeysib-", "xsmtpsib-", "re_", "md-"),
        r"(?:[0-9a-zA-Z]{32}-us\d{1,2}+(?![\w])|x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}|re_(?=\w{0,30}[A-Z])(?=\w{0,30}\d)[A-Za-z0-9]{8}_[A-Za-z0-9]{20,32}+(?![\w])|md-[A-Za-z0-9_-]{22}(?![\w-]))",
        before=(0, 32), check=lambda match: looks_like_token(match[0]), caught=("‹h32›-us14", "xkeysib-‹h64›-‹w16›", "re_‹w8›_‹w24›"), survives=("en-us", "about-us1", "re_compile_patterns_of_the_module"),
    ),
    SanitizerRule(
        "linear-notion-token", "Linear, Notion, Figma, Asana or Dropbox token", "token", ("lin_api_", "lin_oauth_", "ntn_", "secret_", "figd_", "figo_", "figu_", "sl.", "1/1", "2/1", "0/1"),
        r"(?:lin_(?:api|oauth)_[A-Za-z0-9]{32,64}|ntn_[A-Za-z0-9]{40,60}|secret_[A-Za-z0-9]{43}(?!\w)|fig[dou]r?_[A-Za-z0-9_-]{36,64}|sl\.(?:u\.)?[A-Za-z0-9_-]{120,2048}|[012]/1\d{15}(?:/\d{16})?:[a-f0-9]{32})",
        check=_digit, caught=("lin_api_‹w40›", "ntn_‹d11›‹w35›", "secret_‹w43›", "figd_‹s40›", "1/1‹d15›:‹h32›"), survives=("lin_api_key", "secret_santa", "secret_name_of_the_deployment_in_the_cluster_", "1/100"),
    ),
    SanitizerRule(
        "airtable-token", "Airtable token", "token", ("pat",), r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}", caught=("pat‹w14›.‹h64›",), survives=("patternmatchings.example.com", "path.join"),
    ),
    SanitizerRule(
        "hubspot-token", "HubSpot or Typeform token", "token", ("pat-na", "pat-eu", "pat-ap", "tfp_"), r"(?:pat-(?:na|eu|ap)\d-[a-f0-9-]{36}|tfp_[A-Za-z0-9_.=-]{40,64})",
        caught=("pat-na1-‹h8›-‹h4›-‹h4›-‹h4›-‹h12›", "tfp_‹w40›_‹w14›"), survives=("pat-na1-token",),
    ),
    SanitizerRule(
        "intercom-token", "Intercom token", "token", ("dg9r",), r"dG9rOi?[A-Za-z0-9+/]{30,120}={0,2}", caught=("dG9rO‹w54›=",), survives=("dG9r",),
    ),
    SanitizerRule(
        "postman-key", "Postman, RapidAPI or Adobe key", "token", ("pmak-", "pmat-", "p8e-"), r"(?:PMA[KT]-[A-Za-z0-9-]{26,64}|p8e-[A-Za-z0-9_-]{28,36}+(?![\w-]))", check=_digit,
        caught=("PMAK-‹h24›-‹h34›", "PMAT-‹u26›", "p8e-‹s32›"), survives=("PMAK-prefix",),
    ),
    SanitizerRule(
        "mapbox-token", "Mapbox secret token", "token", ("sk.eyj", "tk.eyj"), r"[st]k\.eyJ[A-Za-z0-9_-]{20,400}\.[A-Za-z0-9_-]{16,64}", caught=("sk.eyJ‹w60›.‹w22›",), survives=("sk.eyJ", "pk.ab"),
    ),
    SanitizerRule(
        "okta-token", "Okta token", "token", ("ssws ",), r"SSWS (?P<secret>00[A-Za-z0-9_-]{38,42})", caught=("Authorization: SSWS 00‹s40›",), survives=("SSWS tokens",),
    ),
    SanitizerRule(
        "linkedin-twitter-token", "LinkedIn client secret or Twitter bearer token", "token", ("wpl_ap", "aaaaaaaaaaaaaaaaaaaaa"), r"(?:WPL_AP\d\.[A-Za-z0-9+/=]{16,40}(?:\.[A-Za-z0-9+/=]{8,40})?|A{21,22}(?!A)[A-Za-z0-9%+/]{20,120}={0,2})",
        check=lambda match: len(set(match[0])) > 10, caught=("WPL_AP1.‹w16›.‹w8›==", "AAAAAAAAAAAAAAAAAAAAA‹w80›"), survives=("A" * 60, "WPL_AP1."),
    ),
    SanitizerRule(
        "adafruit-key", "Adafruit IO key", "token", ("aio_",), r"aio_[A-Za-z0-9]{28}(?!\w)", check=_digit, caught=("aio_‹w28›",), survives=("aio_read",),
    ),
    SanitizerRule(
        "contentful-frameio-token", "Contentful, Frame.io, Ionic or Buildium token", "token", ("cfpat-", "fio-u-", "ion_"), r"(?:CFPAT-[A-Za-z0-9_-]{40,64}+|fio-u-[A-Za-z0-9_=-]{60,70}+|ion_[A-Za-z0-9]{42})(?![\w-])", check=_digit,
        caught=("CFPAT-‹s43›", "fio-u-‹s64›"), survives=("ion_charge", "fio-u-prefix"),
    ),
    SanitizerRule(
        "crypto-wallet-key", "a wallet's extended private key", "token", ("xprv", "yprv", "zprv", "tprv"), r"[xyzt]prv[1-9A-HJ-NP-Za-km-z]{100,112}",
        caught=("xprv9‹h100›".replace("‹h100›", "s21ZrQH" * 15),), survives=("xprv is a prefix",),
    ),
    SanitizerRule(
        "scaleway-key", "Scaleway access key", "token", ("scw",), r"SCW[A-Z0-9]{17}(?![\w])", check=_digit, caught=("SCW‹u17›",), survives=("SCWARTZ",),
    ),
)  # fmt: skip


# Smaller services.


#: Prefixes that nothing but a token begins with → what follows.
_SURE = {
    "AIK_CI_": r"[A-Za-z0-9]{20,64}", "AIK_SECRET_": r"[A-Za-z0-9]{32,96}", "$aact_": r"(?:prod|hmlg)_[\w-]{20,160}",
    "CCDB1_": r"[A-Za-z0-9]{22}_[A-Za-z0-9]{40}", "configcat-sdk-1/": r"[\w-]{22}/[\w-]{22}", "AstraCS:": r"[A-Za-z0-9:]{20,160}",
    "dnkey-": r"[a-z0-9=_-]{26}(?:-[a-z0-9=_-]{52})?", "SWMTKN-1-": r"[a-z0-9]{40,64}-[a-z0-9]{20,40}", "SWMKEY-1-": r"[A-Za-z0-9+/]{40,64}",
    "AQ.Ab8RN6": r"[\w-]{40,64}", "mlsn.": r"[A-Za-z0-9]{30,100}", "mercury_production_": r"\w{40,90}", "mergify_application_key_": r"[\w-]{40,200}",
    "os_v2_": r"(?:app|org)_[a-z2-7]{60,128}", "api_live.": r"[\w-]{20,80}", "api_live_": r"(?:ca|us|eu)\.[\w-]{20,80}", "api_sandbox.": r"[\w-]{20,80}",
    "tskey-": r"(?:api|auth|client|scim|webhook)-[A-Za-z0-9]{8,40}(?:-[A-Za-z0-9]{8,64})?", "EAACEdEose0cBA": r"[A-Za-z0-9]{16,400}",
    "mdb_sa_sk_": r"[\w-]{32,64}", "hawk.": r"[\w-]{20}\.[\w-]{20}", "tkn.v1_": r"[A-Za-z0-9]{60,80}=", "VF.": r"(?:(?:DM|WS)\.)?[a-fA-F0-9]{24}\.[A-Za-z0-9]{16}",
    "1000.": r"[a-f0-9]{32}\.[a-f0-9]{32}", "$krb5asrep$": r"\d\d\$(?:[^\s:]{1,80}:)?[0-9a-f]{32}\$[0-9a-f]{64,4096}", "$8$": r"[./A-Za-z0-9]{8,16}\$[./A-Za-z0-9]{43}",
    "BBDC-": r"[A-Za-z0-9+/@_-]{40,50}", "u-s4t2": r"(?:ud|af)-[a-f0-9]{64}", "s-s4t2": r"(?:ud|af)-[a-f0-9]{64}", "NRBR-": r"[0-9a-f]{19}",
    "rh-api-": r"[0-9a-fA-F-]{36}", "salad_cloud_": r"[A-Za-z0-9]{1,12}_[A-Za-z0-9]{7,235}", "5AEP861": r"[A-Za-z0-9._=]{80,400}", "3MVG": r"[A-Za-z0-9._+/=]{70,251}",
    "thog-secret-": r"[0-9a-f]{32}", "thog-key-": r"[0-9a-f]{16}", "pub-c-": r"[0-9a-z-]{36}", "sub-c-": r"[0-9a-z-]{36}", "sec-c-": r"[A-Za-z0-9+/=-]{30,64}",
    "BBFF-": r"[A-Za-z0-9]{30}", "FlyV1 ": r"[A-Za-z0-9=_,/+-]{100,4000}", "akab-": r"[a-z0-9]{16}-[a-z0-9]{16}", "STS.": r"[A-Za-z0-9]{18,40}",
    "pi_": r"[A-Za-z0-9]{20,32}_secret_[A-Za-z0-9]{20,32}", "sqco_": r"[A-Za-z0-9]{59}", "endr+": r"[A-Za-z0-9_=-]{14,80}", "Mid-server-": r"[\w-]{16,64}",
    "SB-Mid-server-": r"[\w-]{16,64}", "PRD-": r"[0-9a-f]{8,12}-[0-9a-f-]{20,32}", "SBX-": r"[0-9a-f]{8,12}-[0-9a-f-]{20,32}", "API_KEY": r"[0-9A-Z]{32}",
    "organizations/": r"[0-9a-f-]{36}/apiKeys/[0-9a-f-]{36}",
}  # fmt: skip
#: Prefixes that a name may begin with → what follows.
_MAYBE = {
    "BSA": r"[\w-]{24,40}", "cnvca": r"[\w-]{51}", "csa_": r"[a-f0-9]{30}[A-Za-z0-9]{6}", "ddp_": r"[A-Za-z0-9]{36}", "ddo_": r"[A-Za-z0-9]{36}",
    "ddw_": r"[A-Za-z0-9]{36}", "dvc_client_": r"\w{8,64}", "dvc_mobile_": r"\w{8,64}", "dvc_server_": r"\w{8,64}", "apk_": r"(?:user_)?[A-Za-z0-9+/]{60,200}={0,2}",
    "cog_": r"[a-z2-7]{40,64}", "essu_": r"[\w-]{60,200}={0,2}", "EXO": r"[A-Za-z0-9]{24,30}", "lip_": r"\w{16,60}", "napi_": r"[A-Za-z0-9]{48,72}",
    "persona_production_": r"[a-z0-9_-]{20,80}", "persona_sandbox_": r"[a-z0-9_-]{20,80}", "pina_": r"[\w-]{20,200}", "polar_at_": r"[\w-]{20,100}",
    "polar_oat_": r"[\w-]{20,100}", "polar_pat_": r"[\w-]{20,100}", "prf_": r"[\w-]{20,80}", "ramp_sec_": r"[A-Za-z0-9]{40,64}", "rpa_": r"[A-Za-z0-9]{30,64}",
    "rootly_": r"[a-f0-9]{64}", "samsara_api_": r"[A-Za-z0-9]{26,40}", "sbp_": r"[a-z0-9_-]{40}", "tss_": r"[\w-]{20,80}", "unkey_": r"[A-Za-z0-9]{20,40}",
    "ucat_": r"[A-Za-z0-9]{24,40}", "vtwn_": r"[\w-]{20,80}", "waka_": r"[a-z0-9-]{36,64}", "zpka_": r"[a-z0-9]{32}_[0-9a-f]{8}", "AQVN": r"[\w-]{35,45}",  "odt_": r"[A-Za-z0-9]{32,255}", "shltm_": r"[\w-]{40}",
    "slk_": r"[a-f0-9]{64}", "bb_pr_": r"[a-f0-9]{30}", "bb_ma_": r"[a-f0-9]{30}", "figp_": r"[\w=-]{36,64}", "glsa_": r"\w{40,48}",
    "NF-": r"[A-Za-z0-9]{32}", "phr_": r"[A-Za-z0-9]{32,64}", "api_": r"[A-Za-z0-9]{20,24}\.[A-Za-z0-9]{20,24}", "key_": r"[0-9a-f]{64}",
    "apikey_": r"[0-9a-f]{64}", "pul-": r"[a-z0-9]{40}", "rubygems_": r"[a-z0-9]{42,52}",  "rnd_": r"[A-Za-z0-9]{28,40}", "gql_": r"[A-Za-z0-9_-]{32,64}",
}  # fmt: skip


def _pattern(prefixes: dict[str, str]) -> str:
    whole = "|".join(f"{re.escape(prefix)}(?:{body})" for prefix, body in prefixes.items())
    return rf"(?:{whole})(?![A-Za-z0-9])"


def _random(match: re.Match[str]) -> bool:
    """Require digits among the letters behind the prefix, in no readable order."""
    body = match[0][max(len(prefix) for prefix in _MAYBE if match[0].startswith(prefix)) :]
    return looks_like_token(body) and sum(map(str.isdigit, body)) >= _DIGITS_LEAST


_DIGITS_LEAST = 1

OTHER_TOKENS: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "other-token", "a token with the prefix of a smaller service (Aikido, Asaas, CockroachDB, Docker Swarm, Mercury, MongoDB Atlas, PubNub, Salesforce, Tailscale, Zoho …)",
        "token", tuple(prefix.lower() for prefix in _SURE), _pattern(_SURE), stuck=True,
        caught=("AIK_SECRET_‹w64›", "CCDB1_‹w22›_‹w40›", "SWMTKN-1-‹l50›-‹l25›", "tskey-api-‹w12›-‹w32›", "os_v2_app_‹l103›".replace("‹l103›", "abcd2345" * 13), "1000.‹h32›.‹h32›",
                "BBDC-‹w44›", "3MVG9‹w80›", "pi_‹w24›_secret_‹w25›", "$krb5asrep$23$‹h32›$‹h80›", "VF.DM.‹h24›.‹w16›", "akab-‹l16›-‹l16›"),
        survives=("tskey-api-keys", "1000.5 and 1000.25", "API_KEY = None", "pi_over_2", "organizations/acme/apiKeys", "STS.assume_role", "PRD-123", "hawk.client.header"),
    ),
    SanitizerRule(
        "likely-token", "what no words make up, behind the prefix of a smaller service (Brave, Canva, Cloudsmith, Deno, Devin, Elastic, Lichess, Neon, Pinterest, Polar, Unkey, WakaTime …)",
        "token", tuple(prefix.lower() for prefix in _MAYBE), _pattern(_MAYBE), check=_random,
        caught=("BSA‹w27›", "csa_‹h30›‹w6›", "ddp_‹w36›", "lip_‹w24›", "napi_‹w64›", "unkey_‹w24›", "waka_‹l36›", "polar_oat_‹w40›", "odt_‹w32›", "key_‹h64›", "phr_‹w44›"),
        survives=("api_version.number_of_items", "prf_of_the_pseudo_random_function", "key_of_the_first_item", "tss_transport_security_settings_for", "lip_of_the_upper_left_corner", "t1.column_name"),
    ),
)  # fmt: skip
