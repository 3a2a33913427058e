"""Token formats of payment, messaging and office services."""

from __future__ import annotations

import base64
import re

from healkit.sanitizer.rule import SanitizerRule
from healkit.sanitizer.value_shapes import looks_like_token


def _digit(match: re.Match[str]) -> bool:
    return any(character.isdigit() for character in match[0])


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
