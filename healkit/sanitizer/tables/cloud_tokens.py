"""Token formats of clouds, infrastructure and monitoring.

The sources are the providers' own pages on their token formats. Bodies are accepted a little shorter and longer than
published: providers lengthen tokens without notice, and a shortened one is no less of a secret.
"""

from __future__ import annotations

import re

from healkit.sanitizer.rule import SanitizerRule
from healkit.sanitizer.value_shapes import looks_like_token


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
