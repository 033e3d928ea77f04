"""Columns that are named like ids or dates and are to be modelled as something else. Public.

It follows from names and declarations alone, so it is said before anything is spent.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping

from sdv_privpgd.columns.facts import ColumnFacts

WHOSE = (
    "Whose rows are these? If a person may have several, one row is protected, not the person: "
    "name the column of people in people=People(column, max_rows=...). If each row is another "
    "person's, say people=People(rows_are_people=True)."
)
"""The question that ids lead to where nobody has said whose the rows are. It is a sentence of its
own, so that a list of sentences has it once."""

_IDS = {"id", "ids", "uuid", "guid", "nr", "nbr", "key"}
"""The last words of names of ids, the last three only behind another word."""

_ALONE = {"id", "ids", "uuid", "guid"}

_NUMBERS = {
    *_IDS, "no", "num", "number", "nummer", "numero", "numer", "code", "codigo", "codice", "cod",
    "identifiant", "identificador", "nro", "cislo", "ид", "номер", "код", "ref", "reference",
    "hash", "token",
}  # fmt: skip
"""With one of these words before or behind it, or at its end, a word for people is one for ids."""

_OF_KINDS = {"type", "kind", "category", "class", "group", "status", "code"}
"""With one of these words before it, an id is one of a few kinds."""

_OF_PEOPLE = {
    "patient", "person", "subject", "participant", "respondent", "customer", "client", "user",
    "member", "student", "pupil", "employee", "household", "individual", "beneficiary",
    "subscriber", "policyholder", "taxpayer", "donor", "citizen", "subj", "cust", "emp", "hh", "pt",
    "pid", "uid", "mrn", "ssn", "nino", "usubjid", "iban", "email", "mail", "phone", "telefon",
    "surname", "lastname", "firstname", "fullname", "nachname", "vorname",
    # German, Dutch, Scandinavian
    "kunde", "kundin", "kunden", "patientin", "patienten", "versicherte", "versicherter",
    "versicherten", "proband", "probanden", "teilnehmer", "mitglied", "haushalt", "schuler",
    "mitarbeiter", "bewohner", "klant", "persoon", "deelnemer", "huishouden", "leerling", "bsn",
    "kund", "personnr", "hushall", "husholdning", "cpr", "hetu", "henkilo", "asiakas", "potilas",
    # French, Spanish, Portuguese, Italian
    "matricule", "nir", "patiente", "assure", "adherent", "beneficiaire", "cliente", "foyer",
    "menage", "individu", "personne", "eleve", "identifiant", "paciente", "persona", "hogar",
    "asegurado", "usuario", "beneficiario", "alumno", "dni", "nif", "curp", "cedula", "expediente",
    "pessoa", "utente", "aluno", "cpf", "matricula", "paziente", "assistito", "soggetto",
    "studente", "matricola",
    # Polish, Czech, Turkish, Russian, Chinese, Japanese
    "pesel", "pacjent", "klient", "osoba", "pacient", "tckn", "hasta", "musteri", "kisi",
    "pacjenta", "pacienta", "klienta", "osoby", "beteg", "ugyfel", "пациент", "пациента",
    "клиент", "клиента", "снилс", "患者", "病人", "客户", "顧客", "会員", "환자", "고객",
    # Numbers of records and of insured people
    "dossier", "nhc", "nhs", "svnr", "nik", "chart", "enrollee", "insured", "claimant", "tenant",
    "vsnr", "kvnr", "aktenzeichen", "pseudonym", "identifier", "identificador", "identificativo",
    "rut", "rfc", "cnp", "nip", "pasient", "pasiente", "henkilotunnus", "personnummer", "pnr",
    "msisdn", "imei",
}  # fmt: skip
"""Words, without accents, for who somebody is: alone, or behind one other word."""

_RECORDS = "account|acct|case|claim|fall|file|invoice|konto|lop|passport|policy|record|study"
_OF_RECORDS = re.compile(rf"({_RECORDS}) ?(id|no|nr|num|number|nummer)")
"""Names of numbers that a person has alone."""

_TRUTHS = {"is", "has", "new", "per", "senior", "active", "repeat", "returning", "loyal", "foreign"}
"""Behind one of these words, a word for people says what they are, or how many."""

_LINKS = {"de", "do", "da", "du", "des", "del", "della", "of", "der", "van"}

_ENDS = ("nummer", "号", "번호")

_DATES = {"date", "datum", "dob", "birthdate", "birthday", "geburtstag", "datetime", "timestamp"}

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")


def on_names(facts: Mapping[str, ColumnFacts], *, says_whose: bool) -> list[str]:
    """Sentences on modelled columns of which nothing is declared, and which may be ids or dates.

    Ids lead to the question ``WHOSE``, unless somebody ``says_whose``.
    """
    unknown = {name: each.sdtype for name, each in facts.items() if each.is_blank}
    ids = [name for name, kind in unknown.items() if kind != "datetime" and is_id(name)]
    dates = [
        name
        for name, kind in unknown.items()
        if kind in ("categorical", "ordinal") and _is_date(_words(name))
    ]
    said = []
    if ids:
        said.append(
            f"The names of {ids!r} are those of ids, and they are to be modelled. If they are ids, "
            "give them the sdtype id, or leave them out: an id that many rows share could be "
            "published, and all others would be lost in noise."
        )
        said += [] if says_whose else [WHOSE]
    if dates:
        said.append(
            f"The names of {dates!r} are those of dates, and they are to be modelled as "
            "categories. If they are dates, give them the sdtype datetime, and their "
            "datetime_format, such as '%d.%m.%Y' for 31.01.2024: of categories only those are "
            "found that many rows share."
        )
    return said


def _words(name: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", name.replace("ß", "ss").replace("°", "o"))
    plain = "".join(each for each in plain if not unicodedata.combining(each))
    plain = unicodedata.normalize("NFC", plain)  # Hangul is written in syllables
    return [word.lower() for word in _WORDS.findall(plain)]


def is_id(name: str) -> bool:
    """Whether a name is one of ids."""
    words = _words(name)
    if not words:
        return False
    if words[0] in _NUMBERS:  # numero_de_cliente
        words = [words[0], *(word for word in words[1:] if word not in _LINKS)]
    if len(words) <= 2 and words[0] not in _TRUTHS:
        stems = (words[-1].removesuffix(end) for end in ("", *_NUMBERS))
        if words[-1].endswith(_ENDS) or any(stem in _OF_PEOPLE for stem in stems):
            return True  # such as patient or patientid
        if len(words) == 2 and words[-1] in _NUMBERS and words[0] in _OF_PEOPLE:
            return True
    # So pandas calls the numbers of rows.
    if words[0] == "unnamed" or _OF_RECORDS.fullmatch(" ".join(words)):
        return True
    if words in (["name"], ["last", "name"], ["first", "name"], ["full", "name"]):
        return True
    if words[-1] not in _IDS:
        return False
    if len(words) == 1:
        return words[0] in _ALONE
    return words[-2] not in _OF_KINDS


def _is_date(words: list[str]) -> bool:
    last = words[-1] if words else ""
    return last in _DATES or last.endswith("datum") or words[:2] == ["date", "of"]


def repeated_ids(columns: Mapping[str, Mapping], keys: Collection[str]) -> tuple[str, ...]:
    """The columns of ids, and of numbers of people, that are no keys of the table. Public."""
    kinds = {name: facts.get("sdtype") for name, facts in columns.items() if name not in keys}
    of_people = ("ssn", "passport_full")
    return tuple(n for n, kind in kinds.items() if kind == "id" or (kind in of_people and is_id(n)))


def on_repeated_ids(
    names: Collection[str], keys: Collection[str] = (), *, says_whose: bool
) -> list[str]:
    """Sentences on ids that are no ``keys``: whether all are ids, and the question ``WHOSE``.

    The latter is not asked where somebody has said whose the rows are.
    """
    said = []
    if kinds := [name for name in (*names, *keys) if not is_id(name)]:
        said.append(
            f"{kinds!r} have the sdtype id, perhaps because it was detected, and no names of ids. "
            "Ids are made up anew, and what the table says in them is lost. If they say of what "
            "kind a row is, give them the sdtype categorical."
        )
    if names and not says_whose:
        said += [f"The ids {list(names)!r} are no keys of the table.", WHOSE]
    return said
