"""The currencies of ISO 4217 that are money: amounts of different ones are never mixed, so each has its one name."""

from __future__ import annotations

from podwright.spec.nearest import near

_CODES = """
    AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CLP
    CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR
    ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT
    MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD
    SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VED VES
    VND VUV WST XAF XCD XOF XPF YER ZAR ZMW ZWG
"""
CURRENCIES = frozenset(_CODES.split())
_WORDS = {"euro": "EUR", "euros": "EUR", "€": "EUR", "dollar": "USD", "dollars": "USD", "$": "USD", "£": "GBP"}


def currency_hint(text: str) -> str | None:
    """Return how to mend what is no currency; None where it is one."""
    if text in CURRENCIES:
        return None
    turned = [code for code in sorted(CURRENCIES) if sorted(code) == sorted(text.upper())]
    meant = _WORDS.get(text.lower()) or next(iter(turned), None) or near(text.upper(), sorted(CURRENCIES))
    return f"did you mean `{meant}`?" if meant else "write its three letters, such as EUR or USD"
