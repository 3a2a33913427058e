def power_mod(base, exponent, modulus):
    answer = 1 % modulus
    base %= modulus
    while exponent > 0:
        if exponent % 2 == 1:
            answer = answer * base % modulus
            exponent //= 2
        base = base * base % modulus
    return answer
