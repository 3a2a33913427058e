def power_mod(base, exponent, modulus):
    answer = 1 % modulus
    base %= modulus
    while exponent > 0:
        if exponent % 2 == 1:
            answer = answer * base % modulus
        base = base * base % modulus
        exponent //= 2
    return answer
