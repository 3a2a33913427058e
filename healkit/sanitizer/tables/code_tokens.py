"""Token formats of code hosts, registries, builds and models."""

from __future__ import annotations

import re

from healkit.sanitizer.rule import JUDGED_CHARS, SanitizerRule, Span, starts_word
from healkit.sanitizer.value_shapes import looks_like_token


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
    found = _VENDOR.search(text, max(0, start - 21), start)
    begin = found.start() if found else start
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
        r"(?:gsk_|r8_|pplx-|xai-|csk-|fw_|nvapi-|tvly-(?:dev-|prod-)?|lsv2_(?:pt|sk)_|jina_|pcsk_|pa-|e2b_|tgp_v1_|bb_live_|fc-|exa_)(?P<body>[A-Za-z0-9_-]{24,200})",
        check=_behind_prefix, caught=("gsk_‹w52›", "r8_‹w37›", "pplx-‹w48›", "xai-‹w80›", "nvapi-‹s64›", "tvly-‹w32›", "lsv2_pt_‹h32›_‹h10›", "jina_‹w60›"),
        survives=("fw_update_and_restart_the_device", "pa-", "fc-match", "r8_unorm", "xai-explainability-for-classifiers"),
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
