def url_parts(url):
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    host, colon, port = host.partition(":")
    if not colon:
        port = 443 if scheme == "https" else 80
    return {"scheme": scheme, "host": host, "port": port, "path": "/" + path}
