#!/usr/bin/env python3
"""Writes the seeds of corpus/login_text/: logins as real initiators do them, and what went wrong.

The format is login_text_fuzz.cc's. Run it again after adding a seed; findings of the fuzzer are
kept beside the seeds under names of their own.
"""
import hashlib
import pathlib

DEMANDS_NOTHING = 0
HOST = "InitiatorName=iqn.1994-05.com.redhat:host"
OPEN = "TargetName=iqn.2026-11.dev.sluice:open"
CHAP = "TargetName=iqn.2026-11.dev.sluice:chap"


def text(*keys):
    return b"".join(key.encode() + b"\0" for key in keys)


def pdu(flags, payload, header=None):
    length = len(payload) | (0x8000 if header else 0)
    return bytes([flags]) + length.to_bytes(2, "big") + (header or b"") + payload


def text_header(ttt, itt=7):
    header = bytearray(48)
    header[0] = 0x04
    header[16:20] = itt.to_bytes(4, "big")
    header[20:24] = ttt.to_bytes(4, "big")
    return bytes(header)


def md5(identifier, secret, challenge):
    return "0x" + hashlib.md5(bytes([identifier]) + secret + challenge).hexdigest()


OPERATIONAL = text(
    "HeaderDigest=None,CRC32C", "DataDigest=CRC32C,None", "DefaultTime2Wait=2",
    "DefaultTime2Retain=0", "IFMarker=No", "OFMarker=No", "IFMarkInt=1~2048",
    "ErrorRecoveryLevel=2", "InitialR2T=No", "ImmediateData=Yes", "MaxBurstLength=16776192",
    "FirstBurstLength=262144", "MaxOutstandingR2T=16", "MaxConnections=1", "DataPDUInOrder=Yes",
    "DataSequenceInOrder=Yes", "MaxRecvDataSegmentLength=0x40000", "TaskReporting=RFC3720",
    "iSCSIProtocolLevel=2", "X-com.example.key=1")
OURS = bytes(range(0xA0, 0xB0))
THEIRS = bytes(range(16))
PROOF = text("CHAP_N=user", "CHAP_R=" + md5(0xA0, b"a secret of 16 b", OURS), "CHAP_I=66",
             "CHAP_C=0x" + THEIRS.hex())
IN_CHAP = (pdu(0x81, text(HOST, CHAP, "SessionType=Normal", "AuthMethod=CHAP,None"))
           + pdu(0x81, text("CHAP_A=5,7")))
DISCOVERY = pdu(0x87, text(HOST, "SessionType=Discovery"))
NEW = 0xFFFFFFFF

SEEDS = {
    "normal": (DEMANDS_NOTHING, pdu(0x81, text(HOST, "InitiatorAlias=guest", OPEN,
                                               "SessionType=Normal", "AuthMethod=None"))
               + pdu(0x87, OPERATIONAL)),
    "operational-only": (DEMANDS_NOTHING, pdu(0x87, text(HOST, OPEN))),
    "security-only": (DEMANDS_NOTHING, pdu(0x83, text(HOST, OPEN, "AuthMethod=None"))),
    "demanding-gateway": (63, pdu(0x87, text(HOST, OPEN, "InitialR2T=No"))
                          + pdu(0x87, text("HeaderDigest=CRC32C", "MaxBurstLength=65536",
                                           "FirstBurstLength=512"))),
    "chap": (DEMANDS_NOTHING, IN_CHAP + pdu(0x81, PROOF) + pdu(0x87, OPERATIONAL)),
    "chap-reflected": (DEMANDS_NOTHING,
                       IN_CHAP + pdu(0x81, PROOF.replace(THEIRS.hex().encode(),
                                                         OURS.hex().encode()))),
    "chap-base64": (DEMANDS_NOTHING,
                    IN_CHAP + pdu(0x81, text("CHAP_N=user", "CHAP_R=0bAAECAwQFBgcICQoLDA0ODw=="))),
    "pieces": (DEMANDS_NOTHING, pdu(0x44, HOST.encode()) + pdu(0x44, b"\0" + OPEN.encode()[:7])
               + pdu(0x87, OPEN.encode()[7:] + b"\0")),
    "long-answer": (DEMANDS_NOTHING,
                    pdu(0x87, text(HOST, OPEN, "MaxRecvDataSegmentLength=512",
                                   *(f"X-{i:050}=1" for i in range(16))))
                    + pdu(0x87, b"") * 4),
    "discovery": (DEMANDS_NOTHING,
                  DISCOVERY + pdu(0x80, text("SendTargets=All"), text_header(NEW))),
    "discovery-one": (DEMANDS_NOTHING,
                      DISCOVERY + pdu(0x80, text("SendTargets=iqn.2026-11.dev.sluice:chap"),
                                      text_header(NEW))),
    "text-pieces": (DEMANDS_NOTHING,
                    DISCOVERY + pdu(0x40, b"SendTar", text_header(NEW))
                    + pdu(0x80, b"gets=All\0", text_header(1))),
    "text-declares": (DEMANDS_NOTHING,
                      pdu(0x87, text(HOST, OPEN))
                      + pdu(0x80, text("MaxRecvDataSegmentLength=512", "InitiatorAlias=x",
                                       "MaxBurstLength=512", "SendTargets="), text_header(NEW))),
    "malformed": (DEMANDS_NOTHING, pdu(0x87, HOST.encode() + b"\0=\0no equals")),
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent / "login_text"
    folder.mkdir(exist_ok=True)
    for name, (demands, pdus) in SEEDS.items():
        (folder / name).write_bytes(bytes([demands]) + pdus)
