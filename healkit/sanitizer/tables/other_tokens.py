"""Token formats of smaller services, known by their prefix.

Facts of the providers: the prefix, the alphabet and the least length of what follows. A prefix that a program's names may
begin with too (`prf_`, `web_`) must be followed by what no words make up.
"""

from __future__ import annotations

import re

from healkit.sanitizer.rule import SanitizerRule
from healkit.sanitizer.value_shapes import looks_like_token

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
