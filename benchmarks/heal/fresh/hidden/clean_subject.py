PREFIXES = ("re:", "fwd:")


def clean_subject(subject):
    subject = subject.strip()
    while subject.lower().startswith(PREFIXES):
        subject = subject.split(":", 1)[1].strip()
    return subject
