"""Token formats of services, known by their prefix.

The prefix, the alphabet and the minimum length of the rest come from the providers. If names in a program may begin
with the same prefix (`prf_`, `web_`), a random part must follow it.
"""

from __future__ import annotations

import base64
import re

from healkit.parts.sanitizer.rule import JUDGED_CHARS, SanitizerRule, Span, starts_word, token
from healkit.parts.sanitizer.secret_values import looks_like_token


def _digit(match: re.Match[str]) -> bool:
    return any(character.isdigit() for character in match[0])


def _mixed(match: re.Match[str]) -> bool:
    return looks_like_token(match[0].rpartition(".")[2])


CLOUD_TOKENS: tuple[SanitizerRule, ...] = (
    token("aws-access-key", "AWS access key id", "akia asia abia acca a3t", {
        "AKIA‹t16›": r"AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9]",
    }, then=r"[A-Z0-9]{16}(?![A-Za-z0-9_])", stuck=True, survives=("ASIAPACIFICREGIONALOFFICES", "AKIA", "Asia/Tokyo")),
    token("aws-bedrock-key", "Amazon Bedrock API key", "absk bedrock-api-key-", {
        "ABSK‹b109›": r"ABSK[A-Za-z0-9+/]{100,280}={0,2}",
        "bedrock-api-key-‹b24›": r"bedrock-api-key-[A-Za-z0-9+/]{20,4096}={0,2}",
    }, survives=("ABSKEWED", "bedrock-api-key-rotation")),
    token("aws-mws-token", "Amazon MWS token", "amzn.mws.",
          {"amzn.mws.‹h8›-‹h4›-‹h4›-‹h4›-‹h12›": r"amzn\.mws\.[0-9a-f-]{32,40}"}, survives=("amzn.mws.documentation",)),
    token("gcp-api-key", "Google API key", "aiza", {"AIza‹s35›": r"AIza[0-9A-Za-z_-]{33,45}"},
          stuck=True, survives=("AIzawa", "Aizawa Shouta")),
    token("gcp-oauth-token", "Google OAuth access or refresh token", "ya29. 1//0", {
        "ya29.‹s60›": r"ya29\.[0-9A-Za-z_-]{20,1024}",
        "1//0‹s60›": r"1//0[0-9A-Za-z_-]{30,512}",
    }, survives=("ya29. is a prefix", "1//0 divides by zero")),
    token("gcp-client-secret", "Google OAuth client secret", "gocspx-",
          {"GOCSPX-‹s28›": r"GOCSPX-[0-9A-Za-z_-]{24,64}"}, survives=("GOCSPX-prefix",)),
    token("azure-client-secret", "Microsoft Entra client secret", "q~", {
        "‹w3›8Q~‹s34›": r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}",
    }, before=(4,), survives=("FAQ~ish", "1Q~2020")),
    token("azure-devops-token", "Azure DevOps personal access token", "azdo",
          {"‹w76›AZDO‹w4›": r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"}, before=(76,), survives=("AZDO pipeline",)),
    token("alibaba-access-key", "Alibaba Cloud access key id", "ltai",
          {"LTAI‹w20›": r"LTAI[A-Za-z0-9]{12,24}+(?![A-Za-z0-9_])"}, check=_digit, survives=("LTAILORED",)),
    token("tencent-secret-id", "Tencent Cloud secret id", "akid", {"AKID‹w32›": r"AKID[A-Za-z0-9]{28,40}"},
          check=_digit, survives=("AKIDs",)),
    token("digitalocean-token", "DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_",
          {"dop_v1_‹h64›": r"do[opr]_v1_[a-f0-9]{40,80}"}, stuck=True, survives=("dop_v1_token",)),
    token("heroku-token", "Heroku API key", "hrku-", {"HRKU-AA‹s58›": r"HRKU-[A-Za-z0-9_-]{36,80}"},
          survives=("HRKU-prefixed keys",)),
    token("cloudflare-token", "Cloudflare token or origin CA key", "v1.0- cfut_ cfat_ cfk_", {
        "v1.0-‹h24›-‹h146›": r"v1\.0-[a-f0-9]{24}-[a-f0-9]{100,160}",
        "cfut_‹w40›": r"cf(?:ut|at|k)_[A-Za-z0-9_-]{32,80}",
    }, survives=("v1.0-beta", "v1.0-deadbeef")),
    token("vercel-token", "Vercel token", "vcp_ vci_ vca_ vcr_ vck_", {"vcp_‹w56›": r"vc[piark]_[A-Za-z0-9_-]{24,80}"},
          survives=("vcp_count",)),
    token("netlify-token", "Netlify personal access token", "nfp_ nfc_ nfo_",
          {"nfp_‹w36›": r"nf[pco]_[A-Za-z0-9]{32,64}"}, survives=("nfp_total",)),
    token("flyio-token", "Fly.io token", "fo1_ fm1a_ fm1r_ fm2_", {
        "fo1_‹s43›": r"fo1_[\w-]{32,64}",
        "fm2_‹b120›": r"fm(?:1[ar]|2)_[A-Za-z0-9+/_-]{60,4096}={0,3}",
    }, survives=("fm2_gain",)),
    token("render-token", "Render or Scalingo token", "rnd_ tk-us-", {
        "rnd_‹w32›": r"rnd_[A-Za-z0-9]{24,64}",
        "tk-us-‹s48›": r"tk-us-[\w-]{40,64}",
    }, check=_digit, survives=("rnd_seed", "rnd_generator_for_the_initial_state")),
    token("vault-token", "HashiCorp Vault token", "hvs. hvb. hvr.", {"hvs.‹s90›": r"hv[sbr]\.[\w-]{20,512}"},
          survives=("hvs.prefix",)),
    token("vault-token-legacy", "HashiCorp Vault token, before 1.10", "s.", {
        "s.‹w24›": r"s\.[A-Za-z0-9]{24}(?![\w.(])",
    }, check=_mixed, survives=("s.getUserAuthenticationName", "s.replace('a', 'b')")),
    token("terraform-token", "Terraform Cloud token", "atlasv1", {
        "‹w14›.atlasv1.‹s67›": r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,90}",
    }, before=(15,), survives=("the atlasv1. part",)),
    token("pulumi-token", "Pulumi access token", "pul-", {"pul-‹h40›": r"pul-[a-f0-9]{40}"}, survives=("pul-request",)),
    token("openshift-token", "OpenShift token", "sha256~", {"sha256~‹s43›": r"sha256~[\w-]{40,50}"},
          survives=("sha256~", "sha256:‹h64›")),
    token("doppler-token", "Doppler token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", {
        "dp.pt.‹w43›": r"dp\.(?:pt|ct|sa|scim|audit|st(?:\.[\w-]{1,40})?)\.[A-Za-z0-9]{40,48}",
    }, survives=("dp.pt.name",)),
    token("onepassword-token", "1Password service account token or secret key", "ops_eyj a3-", {
        "ops_eyJ‹w250›": r"ops_eyJ[A-Za-z0-9+/_-]{60,4096}={0,3}",
        "A3-‹u6›-‹u6›-‹u5›-‹u5›-‹u5›-‹u5›":
            r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    }, survives=("A3-SIZED-PAPER", "ops_eyJ")),
    token("age-secret-key", "age secret key", "age-secret-key-1", {
        "AGE-SECRET-KEY-1‹u58›": r"AGE-SECRET-KEY-1[A-Z0-9]{50,70}",
    }, survives=("AGE-SECRET-KEY-1 marks a key", "age1‹l58›")),
    token("planetscale-token", "PlanetScale password or token", "pscale_",
          {"pscale_pw_‹s43›": r"pscale_(?:pw|tkn|oauth)_[\w=.-]{32,80}"}, survives=("pscale_pw_reset",)),
    token("supabase-token", "Supabase token or secret key", "sbp_ sb_secret_", {
        "sbp_‹h40›": r"sbp_(?:oauth_|v0_)?[a-f0-9]{40}",
        "sb_secret_‹s31›": r"sb_secret_[\w-]{20,64}",
    }, survives=("sbp_table", "sb_publishable_‹s31›")),
    token("neon-upstash-token", "Neon key", "napi_", {"napi_‹l64›": r"napi_[a-z0-9]{48,72}"},
          survives=("napi_status napi_create_function",)),
    token("clickhouse-key", "ClickHouse Cloud secret key", "4b1d", {"4b1d‹w38›": r"4b1d[A-Za-z0-9]{38}(?![A-Za-z0-9])"},
          check=lambda match: not re.fullmatch(r"[0-9a-f]+", match[0]), survives=("4b1d‹h36›", "4b1d")),
    token("databricks-token", "Databricks token", "dapi dose dkea dsapi", {
        "dapi‹h32›": r"d(?:api|ose|kea|sapi)[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])",
    }, survives=("dapi_version", "doses of 5")),
    token("grafana-token", "Grafana key or token", "glc_ glsa_ eyjrijoi", {
        "glc_‹b60›": r"glc_[A-Za-z0-9+/_-]{32,400}={0,3}",
        "glsa_‹w32›_‹h8›": r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}",
        "eyJrIjoi‹w80›": r"eyJrIjoi[A-Za-z0-9+/_-]{40,400}={0,3}",
    }, survives=("glc_width", "glsa_prefix")),
    token("newrelic-key", "New Relic key", "nrak- nrii- nrjs- nriq- nrra- nrsp- nral", {
        "NRAK-‹u27›": r"NR(?:AK|II|IQ|RA|SP|JS)-[A-Za-z0-9_-]{19,40}",
        "‹h36›NRAL": r"[A-Za-z0-9]{36}NRAL",
    }, before=(0, 36), survives=("NRAK-keys are long",)),
    token("sentry-token", "Sentry token", "sntrys_ sntryu_ sntrya_ sntryi_",
          {"sntrys_eyJ‹w120›_‹b43›": r"sntry[suai]_[A-Za-z0-9+/_=-]{40,512}"}, survives=("sntryu_prefix",)),
    token("dynatrace-token", "Dynatrace token", "dt0", {
        "dt0c01.‹u24›.‹u64›": r"dt0[a-z]\d\d\.[A-Za-z0-9]{8,24}\.[A-Za-z0-9]{40,64}",
    }, survives=("dt0c01.", "dt0 = 0.1")),
    token("honeycomb-key", "Honeycomb key", "hcaik_ hcxik_ hcbik_ hcamk_",
          {"hcaik_‹l58›": r"hc[abcx](?:ik|mk|lk)_[a-z0-9]{40,70}"}, survives=("pylf_v1_us_key",)),
    token("launchdarkly-key", "LaunchDarkly or Statsig key", "sdk- mob- api- secret-", {
        "sdk-‹h8›-‹h4›-‹h4›-‹h4›-‹h12›":
            r"(?:sdk|mob|api)-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}",
        "secret-‹w43›": r"secret-[A-Za-z0-9]{36,48}+(?![\w-])",
    }, check=_digit, survives=("api-gateway", "sdk-core", "secret-manager")),
    token("octopus-key", "Octopus Deploy API key", "api-", {"API-‹u26›": r"API-[A-Z0-9]{24,36}+(?![\w-])"},
          check=_digit, survives=("API-REFERENCE", "API-2024")),
    token("authress-key", "Authress access key or 42 client secret", "sc_ ext_ scauth_ authress_ s-s4t2", {
        "sc_‹l12›.‹l4›.acc_‹l16›.‹b60›":
            r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}"
            r"\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_=-]{30,120}",
        "s-s4t2ud-‹h64›": r"s-s4t2(?:ud|af)-[a-f0-9]{64}",
    }, survives=("ext_name", "sc_value.base.acc")),
    token("maxmind-key", "MaxMind licence key", "_mmk", {"‹w6›_‹w29›_mmk": r"[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"},
          before=(36,), survives=("x_mmk",)),
)  # fmt: skip


# Code hosts, registries, builds and models.


def _behind_prefix(match: re.Match[str]) -> bool:
    """Require a token after the prefix: `sk-learn-contrib` and `api_key_for_the_user` contain words."""
    return looks_like_token(match["body"])


def _one_run(match: re.Match[str]) -> bool:
    """Require a long random part without separators in it."""
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
    token("github-token", "GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", {
        "ghp_‹w36›": r"gh[pousr]_[A-Za-z0-9]{30,255}",
        "github_pat_‹w22›_‹w59›": r"github_pat_[A-Za-z0-9_]{40,255}",
    }, stuck=True, survives=("ghp_ tokens", "github_pat_ is a prefix", "ghs_and_then")),
    token("gitlab-token", "GitLab token",
          "glpat- gldt- glrt- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glrtr- glwt- gr1348941", {
        "glpat-‹s20›": r"gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|oas|soat|ffct|wt)-[\w.-]{18,320}",
        "GR1348941‹s20›": r"GR1348941[\w-]{20,40}",
    }, check=_digit, stuck=True, survives=("glpat-prefixed", "glft-and-other-prefixes")),
    token("gitlab-session", "GitLab session", "_gitlab_session=", {
        "_gitlab_session=‹h32›": r"_gitlab_session=(?P<secret>[0-9a-z]{24,64})",
    }, kind="place", survives=("_gitlab_session=x",)),
    token("atlassian-token", "Atlassian API token or Bitbucket app password", "atbb atatt3 atctt3", {
        "ATBB‹w32›": r"AT(?:BB[A-Za-z0-9]{24,40}|[AC]TT3[A-Za-z0-9_+/=-]{20,400})",
    }, check=_digit, survives=("ATBB", "ATATT3 tokens")),
    token("sourcegraph-token", "Sourcegraph token", "sgp_",
          {"sgp_‹h16›_‹h40›": r"sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"}, survives=("sgp_name",)),
    token("npm-token", "npm token", "npm_", {"npm_‹w36›": r"npm_[A-Za-z0-9]{34,64}"},
          stuck=True, survives=("npm_config_registry", "npm_lifecycle_event")),
    token("pypi-token", "PyPI or TestPyPI token", "pypi-age", {"pypi-AgEIcHlwaS5vcmc‹s120›": r"pypi-AgE[\w-]{40,1024}"},
          stuck=True, survives=("pypi-agent", "pypi-AgE")),
    token("rubygems-token", "RubyGems, crates.io, Clojars or NuGet token", "rubygems_ cio clojars_ oy2", {
        "rubygems_‹h48›": r"rubygems_[a-f0-9]{40,64}",
        "cio‹w32›": r"cio[A-Za-z0-9]{32}(?![\w])",
        "CLOJARS_‹l60›": r"CLOJARS_[a-z0-9]{60}",
        "oy2‹l43›": r"oy2[a-z0-9]{43}(?![\w])",
    }, check=_digit, survives=("rubygems_version", "cioran", "oy2 is short")),
    token("docker-token", "Docker Hub token", "dckr_pat_ dckr_oat_",
          {"dckr_pat_‹s27›": r"dckr_[po]at_[A-Za-z0-9_-]{24,64}"}, stuck=True, survives=("dckr_pat_ prefix",)),
    token("artifactory-token", "JFrog Artifactory key or reference token",
          "akc cmvmd ap0 ap1 ap2 ap3 ap4 ap5 ap6 ap7 ap8 ap9", {
        "AKCp‹w69›": r"(?:AKC|AP[0-9])[a-z0-9][A-Za-z0-9]{9,80}",
        "cmVmd‹w59›": r"cmVmd[A-Za-z0-9]{56,64}+",
    }, then=r"(?![A-Za-z0-9])", survives=("AKC registered", "cmVmd")),
    token("circleci-token", "CircleCI, Buildkite or Travis token", "cciat_ ccipat_ bkua_ bkaj_ bkct_", {
        "CCIPAT_‹w22›_‹h40›": r"CCI(?:PAT|PRJ|AT)_[A-Za-z0-9_]{30,80}",
        "bkua_‹h40›": r"bk(?:ua|aj|ct)_[A-Za-z0-9]{32,64}",
    }, survives=("bkua_name",)),
    token("sonar-snyk-token", "SonarQube token", "squ_ sqp_ sqa_ sqb_", {"squ_‹h40›": r"sq[upab]_[a-f0-9]{40}"},
          survives=("squ_name",)),
    token("harness-token", "Harness token", "pat. sat.", {
        "pat.‹s22›.‹h24›.‹w20›": r"pat|sat",
    }, then=r"\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}", survives=("pat.example.com",)),
    token("prefect-infracost-token", "Prefect, Infracost or ReadMe token", "pnu_ pnb_ ico- rdme_", {
        "pnu_‹w36›": r"pn[ub]_[A-Za-z0-9]{36}",
        "ico-‹w32›": r"ico-[A-Za-z0-9]{32}",
        "rdme_‹l70›": r"rdme_[a-z0-9]{60,80}",
    }, check=_digit, survives=("ico-small", "pnu_x")),
    token("anthropic-key", "Anthropic API key", "sk-ant-", {"sk-ant-api03-‹s93›AA": r"sk-ant-[A-Za-z0-9_-]{20,256}"},
          survives=("sk-ant-...", "sk-ant-hill")),
    token("openai-key", "OpenAI key, and keys of the same form (OpenRouter, DeepSeek, Moonshot)", "sk- sess-", {
        "sk-‹w20›T3BlbkFJ‹w20›": r"sk-(?!ant-)(?:(?:proj|svcacct|admin|None|service|or-v1|lf|live|test)-)?",
        "sess-‹s22›": r"sess-",
    }, then=r"(?P<body>[A-Za-z0-9_-]{18,256})", check=_behind_prefix,
        survives=("sk-learn", "sk-ecdsa-sha2-nistp256", "sk-toggleable__content-pre", "task-scheduler-configuration")),
    token("huggingface-token", "Hugging Face token", "hf_ api_org_", {
        "hf_‹w34›": r"hf_",
        "api_org_‹w34›": r"api_org_",
    }, then=r"[A-Za-z0-9]{30,64}+(?![\w])", stuck=True, survives=("hf_hub_download", "hf_transformersautomodelconfig")),
    token("model-key", "key of a model provider (Groq, Replicate, Perplexity, xAI, NVIDIA, Tavily, LangSmith …)",
          "gsk_ r8_ pplx- xai- csk- fw_ nvapi- tvly- lsv2_ jina_ pcsk_ pa- e2b_ tgp_v1_ bb_live_ fc- exa_", {
        "gsk_‹w52›": r"gsk_|r8_|fw_|jina_|pcsk_|e2b_|tgp_v1_|bb_live_|exa_",
        "pplx-‹w48›": r"pplx-|xai-|csk-|nvapi-|tvly-|pa-",
        "lsv2_pt_‹h32›_‹h10›": r"lsv2_(?:pt|sk)_",
        "fc-‹w32›": r"(?<![0-9a-f])fc-",
    }, then=r"(?P<body>[A-Za-z0-9_-]{24,200})", check=_behind_prefix,
        survives=("fw_update_and_restart_the_device", "pa-", "fc-match", "8fbb14fc-f79f-429d-8cf2-4d9d5ac1bc04",
                  "r8_unorm", "xai-explainability-for-classifiers")),
    token("newer-token", "a token of a newer service (Resend, PostHog, Tailscale, Typeform, Apify, Depot …)",
          "re_ pat-na1- pat-eu1- phx_ phc_ phs_ tfp_ flyv1_ key- apify_api_ fal_ llx- co_ b2_ depot_ "
          "vercel_blob_rw_ prefect_ tskey- sl. secret_ gtma_ ap_ ops_ sk_ fio-u- ntn_ figd_ lin_api_ eaag sq0csp-", {
        "re_‹w32›": r"re_|tfp_|flyv1_|fal_|co_|b2_|ap_|ops_|sk_|ntn_|figd_|gtma_|secret_",
        "apify_api_‹w36›": r"apify_api_|lin_api_|depot_|vercel_blob_rw_|prefect_|EAAG",
        "phx_‹w43›": r"ph[xcs]_",
        "pat-na1-‹h32›": r"pat-(?:na|eu)1-",
        "tskey-auth-‹w34›": r"tskey-(?:auth|api|client|scim)-",
        "key-‹h32›": r"key-|llx-|fio-u-|sq0csp-|sl\.",
    }, then=r"(?P<body>[A-Za-z0-9_-]{24,300})", check=_one_run,
        survives=("re_compile_all_the_patterns_of_2024", "key-value-store-for-sessions-v2",
                  "co_consts_and_co_names_of_code1", "secret_manager_client_factory_v1beta1")),
    token("wandb-key", "Weights & Biases, Comet or Pinecone key", "wandb_v1_ pckey_", {
        "wandb_v1_‹w64›": r"wandb_v1_",
        "pckey_‹s36›": r"pckey_",
    }, then=r"[A-Za-z0-9_-]{32,120}", survives=("wandb_v1_run",)),
    SanitizerRule(
        "prefixed-token", "a token with `_live_`, `_test_`, `_secret_` or the like after its first word", "token",
        ("_live_", "_test_", "_prod_", "_sandbox_", "_secret_", "_pat_", "_sk_", "-live-", "-prod-", "_aat_", "_sat_"),
        locate=_prefixed,
        caught=("acme_live_‹w32›", "duffel_test_‹s43›", "shippo_live_‹h40›", "sm_pat_‹w16›", "cal_live_‹h32›",
                "acme_secret_‹w24›", '\x1b[32macme_live_‹w32›\x1b[0m', "sent\\nacme_test_‹h40›"),
        survives=("load_test_configuration", "my_secret_santa_list", "test_token_expires_after_one_hour",
                  "run_live_20240131", "pk_live_‹w24›"),
    ),
)  # fmt: skip


# Payment, messaging and office services.


def _no_words(match: re.Match[str]) -> bool:
    """Refuse names such as `test_writestr_extended_local_header_issue1202` as keys of a payment service."""
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
    """Check that it is a number of twelve digits and a colon in base64, followed by bytes."""
    return re.match(rb"\d{12}:", base64.b64decode(match[0])) is not None


def _shaped_path(match: re.Match[str]) -> bool:
    parts = match["secret"].split("/", 12)[:12]
    return any(looks_like_token(part) or (part.isdigit() and len(part) >= 6) for part in parts)


#: Beginnings of the base64 of a number with many digits.
_SNOWFLAKES = " ".join(
    sorted({base64.b64encode(str(number).encode()).decode().lower() for number in range(100, 1000)})
)

SERVICE_TOKENS: tuple[SanitizerRule, ...] = (
    token("slack-token", "Slack token", "xoxb xoxp xoxa xoxr xoxs xoxo xoxe xoxc xoxd xapp- xwfp-", {
        "xoxb-‹d12›-‹d13›-‹w24›": r"xox[a-z](?:\.xox[bp])?-[A-Za-z0-9%-]{10,512}",
        "xapp-1-A‹u10›-‹d13›-‹h64›": r"x(?:app|wfp)-[A-Za-z0-9-]{16,256}",
    }, check=_digit, stuck=True, survives=("xoxb- tokens", "xoxo, Gossip Girl")),
    token("webhook-url", "a webhook's address (Slack, Discord, Teams, Zapier, Azure)",
          "hooks.slack.com/ /api/webhooks/ webhook.office.com/ hooks.zapier.com/ logic.azure.com "
          "outlook.office.com/webhook", {
        "hooks.slack.com/services/T‹u8›/B‹u8›/‹w24›": r"hooks\.slack\.com/(?:services|workflows|triggers)/",
        "https://discord.com/api/webhooks/‹d18›/‹s68›": r"/api/webhooks/",
        "acme.webhook.office.com/webhookb2/‹h32›@‹h32›/IncomingWebhook/‹h32›/‹h32›":
            r"webhook\.office\.com/webhookb2/",
        "outlook.office.com/webhook/‹b12›": r"outlook\.office\.com/webhook/",
        "https://hooks.zapier.com/hooks/catch/‹d7›/‹l7›/": r"hooks\.zapier\.com/hooks/",
        "logic.azure.com/workflows/‹b12›": r"logic\.azure\.com/workflows/",
    }, then=r"(?P<secret>[\w@/.%?&=:+-]{8,1024})", check=_shaped_path,
        survives=("https://hooks.slack.com/services/", "POST /api/webhooks/incoming",
                  "https://chat.googleapis.com/v1/spaces/list")),
    token("discord-token", "Discord bot token", _SNOWFLAKES, {
        "MTIzNDU2Nzg5MDEyMzQ1Njc4.‹s6›.‹s38›": r"[MNO][A-Za-z0-9_-]{22,29}\.[\w-]{6}\.[\w-]{27,45}+(?![\w.])",
    }, check=_snowflake, survives=("MTIzNDU2", "NdArrayBackedExtensionArray.values.shape")),
    token("jira-token", "personal access token of Jira, Confluence or Bitbucket Data Center", _SNOWFLAKES, {
        "NDU2Nzg5MDEyMzQ1OrAB‹w24›": r"[MNO][A-Za-z0-9+/]{43}(?![A-Za-z0-9+/=_.-])",
    }, check=_numbered, stuck=True, survives=("MTIzNDU2", "NDU2Nzg5MDEyMzQ1‹w28›")),
    token("telegram-token", "Telegram bot token", ":aa", {
        "‹d10›:AA‹s33›": r"(?:bot)?(?P<secret>\d{8,10}:AA[A-Za-z0-9_-]{32,36}+)(?![\w])",
    }, before=(13, 12, 11, 10, 9, 8), survives=("12:AA:34:BB", "fe80::1:aa")),
    token("stripe-key", "Stripe key or webhook secret",
          "sk_live_ sk_test_ rk_live_ rk_test_ whsec_ sk_prod_ rk_prod_ ek_live_ ek_test_", {
        "sk_live_‹w24›": r"(?:sk|rk|ek)_(?:live|test|prod)_[A-Za-z0-9_]{10,256}",
        "whsec_‹w32›": r"whsec_[A-Za-z0-9+/=]{24,256}",
    }, stuck=True, survives=("pk_live_‹w24›", "sk_test_ keys", "whsec_header")),
    token("square-token", "Square token", "eaaa sq0atp- sq0csp-", {
        "EAAA‹s60›": r"EAAA[\w-]{22,64}+",
        "sq0atp-‹s22›": r"sq0(?:atp|csp|idb)-[\w-]{22,60}+",
    }, then=r"(?![\w-])", survives=("sq0atp-prefix", "EAAA")),
    token("facebook-token", "Facebook or Instagram access token", "eaa igqv igaa", {
        "EAACEdEose0cBA‹w150›": r"EAA[A-Za-z0-9]{80,512}+",
        "IGQVJ‹w120›": r"IG(?:QV|AA)[A-Za-z0-9_-]{60,512}+",
    }, then=r"(?![\w-])", check=_digit, survives=("EAA member states", "EAAB")),
    token("shopify-token", "Shopify token", "shpat_ shpca_ shppa_ shpss_ shptka_ shpua_ prtapi_", {
        "shpat_‹h32›": r"shp(?:at|ca|pa|ss|tka|ua)_",
        "prtapi_‹w32›": r"prtapi_",
    }, then=r"[a-zA-Z0-9]{28,64}", check=_digit, survives=("shpat_prefix",)),
    token("payment-key", "key of a payment service (Flutterwave, Paystack, Razorpay, Braintree, PayPal, EasyPost)",
          "flwseck access_token$ rzp_live_ rzp_test_ live_ test_ ezak eztk", {
        "FLWSECK_TEST-‹h32›-X": r"FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,40}(?:-X)?",
        "access_token$production$‹l16›$‹h32›":
            r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}",
        "rzp_live_‹w14›": r"rzp_(?:live|test)_[A-Za-z0-9]{14,40}",
        "live_‹w30›": r"(?:live|test)_(?:[A-Za-z0-9]{30}|[a-f0-9]{35}|[A-Za-z0-9_-]{40})(?![\w-])",
        "EZAK‹w54›": r"EZ[AT]K[A-Za-z0-9]{50,60}",
    }, check=_no_words,
        survives=("live_dashboard", "test_the_user_can_log_in_with_a_name", "rzp_test_mode", "access_token$")),
    token("plaid-token", "Plaid access token",
          "access-sandbox- access-development- access-production- public-production-", {
        "access-production-‹h8›-‹h4›-‹h4›-‹h4›-‹h12›": r"access|public",
    }, then=r"-(?:sandbox|development|production)-[0-9a-f-]{32,40}", survives=("access-production-servers",)),
    token("twilio-key", "Twilio API key", "sk", {"SK‹h32›": r"SK[0-9a-fA-F]{32}(?![\w])"},
          survives=("SK", "SKU 12345678")),
    token("sendgrid-key", "SendGrid key", "sg.", {"SG.‹s22›.‹s43›": r"SG\.[A-Za-z0-9_=.-]{40,96}+(?![A-Za-z0-9_])"},
          check=_digit, survives=("SG.example.com",)),
    token("mailgun-key", "Mailgun key", "key- pubkey-", {"key-‹h32›": r"(?:pub)?key-[0-9a-f]{32}(?![\w])"},
          survives=("key-value", "key-3ax6")),
    token("mail-key", "key of a mail service (Mailchimp, Mandrill, Brevo)", "-us xkeysib- xsmtpsib- md-", {
        "‹h32›-us14": r"[0-9a-zA-Z]{32}-us\d{1,2}+(?![\w])",
        "xkeysib-‹h64›-‹w16›": r"x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}",
    }, before=(0, 32), check=lambda match: looks_like_token(match[0]),
        survives=("en-us", "about-us1", "re_compile_patterns_of_the_module")),
    token("linear-notion-token", "Notion, Figma or Asana token", "ntn_ figd_ figo_ figu_ 1/1 2/1 0/1", {
        "ntn_‹d11›‹w35›": r"ntn_[A-Za-z0-9]{40,60}",
        "figd_‹s40›": r"fig[dou]r?_[A-Za-z0-9_-]{36,64}",
        "1/1‹d15›:‹h32›": r"[012]/1\d{15}:[a-f0-9]{32}",
    }, check=_digit,
        survives=("lin_api_key", "secret_santa", "secret_name_of_the_deployment_in_the_cluster_", "1/100")),
    token("airtable-token", "Airtable token", "pat", {"pat‹w14›.‹h64›": r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}"},
          survives=("patternmatchings.example.com", "path.join")),
    token("hubspot-token", "HubSpot or Typeform token", "pat-na pat-eu pat-ap tfp_", {
        "pat-na1-‹h8›-‹h4›-‹h4›-‹h4›-‹h12›": r"pat-(?:na|eu|ap)\d-[a-f0-9-]{36}",
        "tfp_‹w40›_‹w14›": r"tfp_[A-Za-z0-9_.=-]{40,64}",
    }, survives=("pat-na1-token",)),
    token("intercom-token", "Intercom token", "dg9r", {"dG9rO‹w54›=": r"dG9rOi?[A-Za-z0-9+/]{30,120}={0,2}"},
          survives=("dG9r",)),
    token("postman-key", "Postman, RapidAPI or Adobe key", "pmak- pmat- p8e-", {
        "PMAK-‹h24›-‹h34›": r"PMA[KT]-[A-Za-z0-9-]{26,64}",
        "p8e-‹s32›": r"p8e-[A-Za-z0-9_-]{28,36}+(?![\w-])",
    }, check=_digit, survives=("PMAK-prefix",)),
    token("mapbox-token", "Mapbox secret token", "sk.eyj tk.eyj", {
        "sk.eyJ‹w60›.‹w22›": r"[st]k\.eyJ[A-Za-z0-9_-]{20,400}\.[A-Za-z0-9_-]{16,64}",
    }, survives=("sk.eyJ", "pk.ab")),
    token("okta-token", "Okta token", "ssws",
          {"Authorization: SSWS 00‹s40›": r"SSWS (?P<secret>00[A-Za-z0-9_-]{38,42})"}, survives=("SSWS tokens",)),
    token("linkedin-twitter-token", "Twitter bearer token", "aaaaaaaaaaaaaaaaaaaaa", {
        "AAAAAAAAAAAAAAAAAAAAA‹w80›": r"A{21,22}(?!A)[A-Za-z0-9%+/]{20,120}={0,2}",
    }, check=lambda match: len(set(match[0])) > 10,
        survives=("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "WPL_AP1.")),
    token("adafruit-key", "Adafruit IO key", "aio_", {"aio_‹w28›": r"aio_[A-Za-z0-9]{28}(?!\w)"},
          check=_digit, survives=("aio_read",)),
    token("contentful-frameio-token", "Contentful, Frame.io, Ionic or Buildium token", "cfpat- fio-u- ion_", {
        "CFPAT-‹s43›": r"CFPAT-[A-Za-z0-9_-]{40,64}+",
        "fio-u-‹s64›": r"fio-u-[A-Za-z0-9_=-]{60,70}+",
        "ion_‹w42›": r"ion_[A-Za-z0-9]{42}",
    }, then=r"(?![\w-])", check=_digit, survives=("ion_charge", "fio-u-prefix")),
)  # fmt: skip


# Smaller services.


#: Prefixes that nothing but a token begins with → what follows.
_SURE = {
    "AIK_CI_": r"[A-Za-z0-9]{20,64}", "AIK_SECRET_": r"[A-Za-z0-9]{32,96}", "$aact_": r"(?:prod|hmlg)_[\w-]{20,160}",
    "CCDB1_": r"[A-Za-z0-9]{22}_[A-Za-z0-9]{40}", "configcat-sdk-1/": r"[\w-]{22}/[\w-]{22}",
    "AstraCS:": r"[A-Za-z0-9:]{20,160}", "dnkey-": r"[a-z0-9=_-]{26}(?:-[a-z0-9=_-]{52})?",
    "SWMTKN-1-": r"[a-z0-9]{40,64}-[a-z0-9]{20,40}", "SWMKEY-1-": r"[A-Za-z0-9+/]{40,64}",
    "AQ.Ab8RN6": r"[\w-]{40,64}", "mlsn.": r"[A-Za-z0-9]{30,100}", "mercury_production_": r"\w{40,90}",
    "mergify_application_key_": r"[\w-]{40,200}", "os_v2_": r"(?:app|org)_[a-z2-7]{60,128}",
    "api_live.": r"[\w-]{20,80}", "api_live_": r"(?:ca|us|eu)\.[\w-]{20,80}",
    "tskey-": r"(?:api|auth|client|scim|webhook)-[A-Za-z0-9]{8,40}(?:-[A-Za-z0-9]{8,64})?",
    "EAACEdEose0cBA": r"[A-Za-z0-9]{16,400}", "mdb_sa_sk_": r"[\w-]{32,64}", "hawk.": r"[\w-]{20}\.[\w-]{20}",
    "tkn.v1_": r"[A-Za-z0-9]{60,80}=", "VF.": r"(?:(?:DM|WS)\.)?[a-fA-F0-9]{24}\.[A-Za-z0-9]{16}",
    "1000.": r"[a-f0-9]{32}\.[a-f0-9]{32}", "$krb5asrep$": r"\d\d\$(?:[^\s:]{1,80}:)?[0-9a-f]{32}\$[0-9a-f]{64,4096}",
    "$8$": r"[./A-Za-z0-9]{8,16}\$[./A-Za-z0-9]{43}", "BBDC-": r"[A-Za-z0-9+/@_-]{40,50}",
    "u-s4t2": r"(?:ud|af)-[a-f0-9]{64}", "NRBR-": r"[0-9a-f]{19}", "rh-api-": r"[0-9a-fA-F-]{36}",
    "salad_cloud_": r"[A-Za-z0-9]{1,12}_[A-Za-z0-9]{7,235}", "3MVG": r"[A-Za-z0-9._+/=]{70,251}",
    "pub-c-": r"[0-9a-z-]{36}", "sub-c-": r"[0-9a-z-]{36}", "BBFF-": r"[A-Za-z0-9]{30}",
    "FlyV1 ": r"[A-Za-z0-9=_,/+-]{100,4000}", "akab-": r"[a-z0-9]{16}-[a-z0-9]{16}", "STS.": r"[A-Za-z0-9]{18,40}",
    "endr+": r"[A-Za-z0-9_=-]{14,80}", "PRD-": r"[0-9a-f]{8,12}-[0-9a-f-]{20,32}",
    "SBX-": r"[0-9a-f]{8,12}-[0-9a-f-]{20,32}", "API_KEY": r"[0-9A-Z]{32}",
}  # fmt: skip
#: Prefixes that a name may begin with → what follows.
_MAYBE = {
    "BSA": r"[\w-]{24,40}", "cnvca": r"[\w-]{51}", "csa_": r"[a-f0-9]{30}[A-Za-z0-9]{6}", "ddp_": r"[A-Za-z0-9]{36}",
    "dvc_client_": r"\w{8,64}", "dvc_mobile_": r"\w{8,64}", "dvc_server_": r"\w{8,64}",
    "apk_": r"(?:user_)?[A-Za-z0-9+/]{60,200}={0,2}", "cog_": r"[a-z2-7]{40,64}", "essu_": r"[\w-]{60,200}={0,2}",
    "EXO": r"[A-Za-z0-9]{24,30}", "lip_": r"\w{16,60}", "napi_": r"[A-Za-z0-9]{48,72}",
    "persona_production_": r"[a-z0-9_-]{20,80}", "persona_sandbox_": r"[a-z0-9_-]{20,80}", "pina_": r"[\w-]{20,200}",
    "polar_at_": r"[\w-]{20,100}", "polar_oat_": r"[\w-]{20,100}", "polar_pat_": r"[\w-]{20,100}",
    "prf_": r"[\w-]{20,80}", "ramp_sec_": r"[A-Za-z0-9]{40,64}", "rpa_": r"[A-Za-z0-9]{30,64}",
    "rootly_": r"[a-f0-9]{64}", "samsara_api_": r"[A-Za-z0-9]{26,40}", "sbp_": r"[a-z0-9_-]{40}",
    "tss_": r"[\w-]{20,80}", "unkey_": r"[A-Za-z0-9]{20,40}", "ucat_": r"[A-Za-z0-9]{24,40}",
    "vtwn_": r"[\w-]{20,80}", "waka_": r"[a-z0-9-]{36,64}", "zpka_": r"[a-z0-9]{32}_[0-9a-f]{8}",
    "AQVN": r"[\w-]{35,45}", "odt_": r"[A-Za-z0-9]{32,255}", "shltm_": r"[\w-]{40}", "slk_": r"[a-f0-9]{64}",
    "bb_pr_": r"[a-f0-9]{30}", "bb_ma_": r"[a-f0-9]{30}", "figp_": r"[\w=-]{36,64}", "glsa_": r"\w{40,48}",
    "NF-": r"[A-Za-z0-9]{32}", "phr_": r"[A-Za-z0-9]{32,64}", "key_": r"[0-9a-f]{64}", "apikey_": r"[0-9a-f]{64}",
}  # fmt: skip


def _pattern(prefixes: dict[str, str]) -> str:
    whole = "|".join(f"{re.escape(prefix)}(?:{body})" for prefix, body in prefixes.items())
    return rf"(?:{whole})(?![A-Za-z0-9])"


def _random(match: re.Match[str]) -> bool:
    """Require digits among the letters after the prefix, in no readable order."""
    body = match[0][max(len(prefix) for prefix in _MAYBE if match[0].startswith(prefix)) :]
    return looks_like_token(body) and sum(map(str.isdigit, body)) >= _DIGITS_LEAST


_DIGITS_LEAST = 1

OTHER_TOKENS: tuple[SanitizerRule, ...] = (
    SanitizerRule(
        "other-token",
        "a token with the prefix of a smaller service (Aikido, Asaas, CockroachDB, Mercury, MongoDB Atlas, Zoho …)",
        "token", tuple(prefix.lower() for prefix in _SURE), _pattern(_SURE), stuck=True,
        caught=("AIK_SECRET_‹w64›", "CCDB1_‹w22›_‹w40›", "SWMTKN-1-‹l50›-‹l25›", "tskey-api-‹w12›-‹w32›",
                "1000.‹h32›.‹h32›", "BBDC-‹w44›", "3MVG9‹w80›", "$krb5asrep$23$‹h32›$‹h80›", "VF.DM.‹h24›.‹w16›",
                "akab-‹l16›-‹l16›"),
        survives=("tskey-api-keys", "1000.5 and 1000.25", "API_KEY = None", "STS.assume_role", "PRD-123",
                  "hawk.client.header"),
    ),
    SanitizerRule(
        "likely-token",
        "a random text after the prefix of a smaller service (Brave, Canva, Deno, Elastic, Polar …)",
        "token", tuple(prefix.lower() for prefix in _MAYBE), _pattern(_MAYBE), check=_random,
        caught=("BSA‹w27›", "csa_‹h30›‹w6›", "ddp_‹w36›", "lip_‹w24›", "napi_‹w64›", "unkey_‹w24›", "waka_‹l36›",
                "polar_oat_‹w40›", "odt_‹w32›", "key_‹h64›", "phr_‹w44›"),
        survives=("prf_of_the_pseudo_random_function", "key_of_the_first_item",
                  "tss_transport_security_settings_for", "lip_of_the_upper_left_corner"),
    ),
)  # fmt: skip
