// Logins of real initiators, byte for byte: what each sends, and every byte of our answer.
#include <gtest/gtest.h>

#include <cstdio>
#include <span>

#include "iscsi/login/login_dialogue.h"

namespace sluice::iscsi {
namespace {

struct Exchange {
  const char* request;  // header
  Keys keys;
  const char* answer;  // header; StatSN, ExpCmdSN, MaxCmdSN and the new TSIH are the caller's
  Keys answers;
};

pdu::Bhs header_of(const char* hex) {
  pdu::Bhs header;
  for (uint8_t& byte : header.bytes) {
    unsigned value = 0;
    EXPECT_EQ(std::sscanf(hex, "%2x", &value), 1);
    byte = static_cast<uint8_t>(value);
    hex += 2;
  }
  return header;
}

void replay(std::span<const Exchange> exchanges) {
  LoginDialogue d;
  for (const Exchange& e : exchanges) {
    d.header = header_of(e.request);
    const std::string text = text_of(e.keys);
    ASSERT_EQ(d.header.data_length(), text.size());
    LoginAnswer answer;
    const bool last = &e == &exchanges.back();
    ASSERT_EQ(d.login().on_request(d.header, as_bytes(text), &answer),
              last ? Login::Outcome::kSucceeded : Login::Outcome::kContinue)
        << d.login().reason();
    EXPECT_EQ(answer.header.bytes, header_of(e.answer).bytes);
    EXPECT_EQ(keys_of(answer.text), e.answers);
    EXPECT_EQ(answer.text, text_of(e.answers));
  }
}

TEST(LoginTranscript, OpenIscsiLogsIn) {
  const Exchange exchanges[] = {
      {"438100000000008900023d010000000000000000000000000000000100000000000000000000000000000000000"
       "00000",
       {"InitiatorName=iqn.1994-05.com.redhat:8f1c", "InitiatorAlias=guest",
        "TargetName=iqn.2026-11.dev.sluice:open", "SessionType=Normal", "AuthMethod=None"},
       "238100000000002700023d010000000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"TargetPortalGroupTag=7", "AuthMethod=None"}},
      {"438700000000013700023d010000000000000000000000000000000100000000000000000000000000000000000"
       "00000",
       {"HeaderDigest=None", "DataDigest=None", "DefaultTime2Wait=2", "DefaultTime2Retain=0",
        "IFMarker=No", "OFMarker=No", "ErrorRecoveryLevel=0", "InitialR2T=No", "ImmediateData=Yes",
        "MaxBurstLength=16776192", "FirstBurstLength=262144", "MaxOutstandingR2T=1",
        "MaxConnections=1", "DataPDUInOrder=Yes", "DataSequenceInOrder=Yes",
        "MaxRecvDataSegmentLength=262144"},
       "238700000000013600023d010000000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"HeaderDigest=None", "DataDigest=None", "DefaultTime2Wait=2", "DefaultTime2Retain=0",
        "IFMarker=No", "OFMarker=No", "ErrorRecoveryLevel=0", "InitialR2T=No", "ImmediateData=Yes",
        "MaxBurstLength=1048576", "FirstBurstLength=262144", "MaxOutstandingR2T=1",
        "MaxConnections=1", "DataPDUInOrder=Yes", "DataSequenceInOrder=Yes",
        "MaxRecvDataSegmentLength=262144"}},
  };
  replay(exchanges);
}

TEST(LoginTranscript, OpenIscsiDiscovers) {
  const Exchange exchanges[] = {
      {"438100000000006500023d010000000000000000000000000000000100000000000000000000000000000000000"
       "00000",
       {"InitiatorName=iqn.1994-05.com.redhat:8f1c", "InitiatorAlias=guest",
        "SessionType=Discovery", "AuthMethod=None"},
       "238100000000001000023d010000000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"AuthMethod=None"}},
      {"438700000000009600023d010000000000000000000000000000000100000000000000000000000000000000000"
       "00000",
       {"HeaderDigest=None", "DataDigest=None", "DefaultTime2Wait=2", "DefaultTime2Retain=0",
        "IFMarker=No", "OFMarker=No", "ErrorRecoveryLevel=0", "MaxRecvDataSegmentLength=32768"},
       "238700000000009700023d010000000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"HeaderDigest=None", "DataDigest=None", "DefaultTime2Wait=2", "DefaultTime2Retain=0",
        "IFMarker=No", "OFMarker=No", "ErrorRecoveryLevel=0", "MaxRecvDataSegmentLength=262144"}},
  };
  replay(exchanges);
}

TEST(LoginTranscript, AnInitiatorBeginsInTheOperationalStage) {
  const Exchange exchanges[] = {
      {"438700000000004e800000000001000000000005000100000000006400000000000000000000000000000000000"
       "00000",
       {"InitiatorName=iqn.2026-11.example:tiny", "TargetName=iqn.2026-11.dev.sluice:open"},
       "2387000000000037800000000001000000000005000000000000000000000000000000000000000000000000000"
       "00000",
       {"TargetPortalGroupTag=7", "MaxRecvDataSegmentLength=262144"}},
  };
  replay(exchanges);
}

TEST(LoginTranscript, WindowsLogsIn) {
  const Exchange exchanges[] = {
      {"438100000000007b400001370000000000000000000100000000000000000000000000000000000000000000000"
       "00000",
       {"InitiatorName=iqn.1991-05.com.microsoft:win-host", "SessionType=Normal",
        "TargetName=iqn.2026-11.dev.sluice:open", "AuthMethod=None"},
       "2381000000000027400001370000000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"TargetPortalGroupTag=7", "AuthMethod=None"}},
      {"438700000000012b400001370000000000000000000100000000000000000000000000000000000000000000000"
       "00000",
       {"HeaderDigest=None,CRC32C", "DataDigest=None,CRC32C", "ErrorRecoveryLevel=2",
        "InitialR2T=No", "ImmediateData=Yes", "MaxRecvDataSegmentLength=65536",
        "MaxBurstLength=262144", "FirstBurstLength=65536", "MaxConnections=1", "DataPDUInOrder=Yes",
        "DataSequenceInOrder=Yes", "DefaultTime2Wait=0", "DefaultTime2Retain=60",
        "MaxOutstandingR2T=16"},
       "238700000000011c400001370000000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"HeaderDigest=None", "DataDigest=None", "ErrorRecoveryLevel=0", "InitialR2T=No",
        "ImmediateData=Yes", "MaxBurstLength=262144", "FirstBurstLength=65536", "MaxConnections=1",
        "DataPDUInOrder=Yes", "DataSequenceInOrder=Yes", "DefaultTime2Wait=2",
        "DefaultTime2Retain=0", "MaxOutstandingR2T=8", "MaxRecvDataSegmentLength=262144"}},
  };
  replay(exchanges);
}

TEST(LoginTranscript, EsxiLogsIn) {
  const Exchange exchanges[] = {
      {"438100000000007900023d000001000000000000000000000000000100000000000000000000000000000000000"
       "00000",
       {"InitiatorName=iqn.1998-01.com.vmware:esx1-5c1a", "TargetName=iqn.2026-11.dev.sluice:open",
        "SessionType=Normal", "AuthMethod=None"},
       "238100000000002700023d000001000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"TargetPortalGroupTag=7", "AuthMethod=None"}},
      {"438700000000013600023d000001000000000000000000000000000100000000000000000000000000000000000"
       "00000",
       {"HeaderDigest=None", "DataDigest=None", "DefaultTime2Wait=0", "DefaultTime2Retain=0",
        "IFMarker=No", "OFMarker=No", "ErrorRecoveryLevel=0", "InitialR2T=Yes", "ImmediateData=Yes",
        "MaxBurstLength=262144", "FirstBurstLength=262144", "MaxOutstandingR2T=1",
        "MaxConnections=1", "DataPDUInOrder=Yes", "DataSequenceInOrder=Yes",
        "MaxRecvDataSegmentLength=131072"},
       "238700000000013600023d000001000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"HeaderDigest=None", "DataDigest=None", "DefaultTime2Wait=2", "DefaultTime2Retain=0",
        "IFMarker=No", "OFMarker=No", "ErrorRecoveryLevel=0", "InitialR2T=Yes", "ImmediateData=Yes",
        "MaxBurstLength=262144", "FirstBurstLength=262144", "MaxOutstandingR2T=1",
        "MaxConnections=1", "DataPDUInOrder=Yes", "DataSequenceInOrder=Yes",
        "MaxRecvDataSegmentLength=262144"}},
  };
  replay(exchanges);
}

TEST(LoginTranscript, LibiscsiLogsInRepeatingItsNames) {
  const Exchange exchanges[] = {
      {"43810000000000a980b3c4d500000000bd5e7c31000000000000000000000000000000000000000000000000000"
       "00000",
       {"InitiatorName=iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-test",
        "InitiatorAlias=libiscsi", "TargetName=iqn.2026-11.dev.sluice:open", "SessionType=Normal",
        "AuthMethod=CHAP,None"},
       "238100000000002780b3c4d500000000bd5e7c31000000000000000000000000000000000000000000000000000"
       "00000",
       {"TargetPortalGroupTag=7", "AuthMethod=None"}},
      {"43870000000001d080b3c4d500000000bd5e7c31000000000000000000000000000000000000000000000000000"
       "00000",
       {"InitiatorName=iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-test",
        "InitiatorAlias=libiscsi",
        "TargetName=iqn.2026-11.dev.sluice:open",
        "SessionType=Normal",
        "HeaderDigest=None,CRC32C",
        "DataDigest=None",
        "InitialR2T=No",
        "ImmediateData=Yes",
        "MaxBurstLength=262144",
        "FirstBurstLength=262144",
        "DefaultTime2Wait=2",
        "DefaultTime2Retain=0",
        "IFMarker=No",
        "OFMarker=No",
        "MaxConnections=1",
        "MaxOutstandingR2T=1",
        "ErrorRecoveryLevel=0",
        "DataPDUInOrder=Yes",
        "DataSequenceInOrder=Yes",
        "MaxRecvDataSegmentLength=262144"},
       "238700000000013580b3c4d500000000bd5e7c31000000000000000000000000000000000000000000000000000"
       "00000",
       {"HeaderDigest=None", "DataDigest=None", "InitialR2T=No", "ImmediateData=Yes",
        "MaxBurstLength=262144", "FirstBurstLength=262144", "DefaultTime2Wait=2",
        "DefaultTime2Retain=0", "IFMarker=No", "OFMarker=No", "MaxConnections=1",
        "MaxOutstandingR2T=1", "ErrorRecoveryLevel=0", "DataPDUInOrder=Yes",
        "DataSequenceInOrder=Yes", "MaxRecvDataSegmentLength=262144"}},
  };
  replay(exchanges);
}

TEST(LoginTranscript, OpenIscsiLogsInWithMutualChap) {
  const Exchange exchanges[] = {
      {"438100000000008b00023d010000000000000000000000000000000100000000000000000000000000000000000"
       "00000",
       {"InitiatorName=iqn.1994-05.com.redhat:8f1c", "InitiatorAlias=guest",
        "TargetName=iqn.2026-11.dev.sluice:mutual", "SessionType=Normal", "AuthMethod=CHAP"},
       "230000000000002700023d010000000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"TargetPortalGroupTag=7", "AuthMethod=CHAP"}},
      {"430000000000000900023d010000000000000000000000000000000100000000000000000000000000000000000"
       "00000",
       {"CHAP_A=5"},
       "230000000000003e00023d010000000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"CHAP_A=5", "CHAP_I=160", "CHAP_C=0xa0a1a2a3a4a5a6a7a8a9aaabacadaeaf"}},
      {"438100000000006a00023d010000000000000000000000000000000100000000000000000000000000000000000"
       "00000",
       {"CHAP_N=user", "CHAP_R=0x20517659b313e2647435e22926e49b67", "CHAP_I=66",
        "CHAP_C=0x000102030405060708090a0b0c0d0e0f"},
       "238100000000003800023d010000000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"CHAP_N=target", "CHAP_R=0x3c79a2eb70b614cbe9e4c9195b0b32c1"}},
      {"438700000000004e00023d010000000000000000000000000000000100000000000000000000000000000000000"
       "00000",
       {"HeaderDigest=CRC32C,None", "DataDigest=CRC32C,None", "MaxRecvDataSegmentLength=8192"},
       "238700000000004600023d010000000000000000000000000000000000000000000000000000000000000000000"
       "00000",
       {"HeaderDigest=CRC32C", "DataDigest=CRC32C", "MaxRecvDataSegmentLength=262144"}},
  };
  replay(exchanges);
}

}  // namespace
}  // namespace sluice::iscsi
