#include "config/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "config/keys.h"
#include "config/parse_fixture.h"
#include "config/reload_fixture.h"
#include "config/summary.h"
#include "config/uuid.h"

namespace sluice::config {
namespace {

using testing::HasSubstr;

constexpr const char* kTopKeys =
    "Valid keys: listen gateway-number reactors reactor-cpus reactor-memory tcp-congestion "
    "busy-poll metrics admin-socket state-directory core-dumps log iscsi connections discovery "
    "targets control-plane";

struct Fault {
  const char* name;
  std::string yaml;
  std::string message;  // exactly
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

std::string case_name(const testing::TestParamInfo<Fault>& c) { return c.param.name; }

class BadInput : public testing::TestWithParam<Fault> {};

TEST_P(BadInput, IsRefusedWithLineKeyAndFix) {
  const Result<Config> config = read_yaml(GetParam().yaml);
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.error(), GetParam().message);
}

const Fault kShape[] = {
    {"UnknownKey", "listen: [{address: 127.0.0.1}]\nreactor: 2\n",
     std::string("g.yaml:2: unknown key 'reactor'; did you mean 'reactors'? ") + kTopKeys},
    {"UnknownKeyInASection", "log:\n  levle: info\n",
     "g.yaml:2: log: unknown key 'levle'; did you mean 'level'? Valid keys: level format"},
    {"UnknownKeyInAList", with_luns("  - id: 0\n    backend: 'null'\n    sise: 1GiB\n"),
     "g.yaml:7: targets[0].luns[0]: unknown key 'sise'; did you mean 'size'? Valid keys: id uuid "
     "backend path rbd size block-size physical-block-size io write-cache read-only create product "
     "oui\n"
     "g.yaml:6: targets[0].luns[0].backend: no size; write null:1GiB"},
    {"TargetsInACluster",
     "targets: []\ncontrol-plane: {endpoints: [\"127.0.0.1:1\"], insecure-loopback: on}\n",
     "g.yaml:1: targets: comes from the control plane; remove it here, or remove control-plane"},
    {"KeyTwice", "reactors: 1\nreactors: 2\n", "g.yaml:2: reactors: given twice"},
    {"NotYaml", "listen: [\n", "g.yaml:2: not YAML: end of sequence flow not found"},
    {"NotAMapping", "- a\n",
     "g.yaml:1: got something else, allowed a section of 'key: value' lines"},
    {"ListForNumber", "reactors: [1]\n", "g.yaml:1: reactors: got a list, allowed 1 to 64"},
    {"NothingForNumber", "reactors:\n", "g.yaml:1: reactors: got nothing, allowed 1 to 64"},
    {"SectionForList", "targets: {iqn: x}\n",
     "g.yaml:1: targets: got a section, allowed a list of 0 to 1024"},
    {"HostsMissing", "targets:\n- iqn: iqn.2026-11.example:t\n",
     "g.yaml:2: targets[0].hosts: is missing; allowed a list of 0 to 1024"},
};
INSTANTIATE_TEST_SUITE_P(Shape, BadInput, testing::ValuesIn(kShape), case_name);

const Fault kValues[] = {
    {"NumberTooLarge", "\nreactors: 900\n", "g.yaml:2: reactors: got 900, allowed 1 to 64"},
    {"NumberZero", "reactors: 0\n", "g.yaml:1: reactors: got 0, allowed 1 to 64"},
    {"NumberNegative", "reactors: -1\n", "g.yaml:1: reactors: got '-1', allowed 1 to 64"},
    {"NumberHuge", "reactors: 99999999999999999999999\n",
     "g.yaml:1: reactors: got '99999999999999999999999', allowed 1 to 64"},
    {"SizeTooSmall", "reactor-memory: 1MiB\n",
     "g.yaml:1: reactor-memory: got 1MiB, allowed 72MiB to 64GiB"},
    {"SizeDecimal", "reactor-memory: 1GB\n",
     "g.yaml:1: reactor-memory: '1GB' has an unknown unit; use B, KiB, MiB, GiB, TiB, PiB or EiB "
     "(powers of 1024); allowed 72MiB to 64GiB"},
    {"DurationWithoutUnit", "connections: {login-timeout: 15}\n",
     "g.yaml:1: connections.login-timeout: '15' is not a duration; write a whole number and us, "
     "ms, s or m, as in 1500ms; allowed 1s to 1m"},
    {"DurationTooLong", "connections: {login-timeout: 2m}\n",
     "g.yaml:1: connections.login-timeout: got 2m, allowed 1s to 1m"},
    {"NopsTooSlowTogether", "connections: {nop-silence: 2s, nop-timeout: 1500ms}\n",
     "g.yaml:1: connections.nop-timeout: nop-silence and nop-timeout together exceed 3s"},
    {"BurstsContradict", "iscsi: {max-burst-length: 64KiB, first-burst-length: 128KiB}\n",
     "g.yaml:1: iscsi.first-burst-length: is larger than max-burst-length"},
    {"HalfSeconds", "iscsi: {default-time2wait: 500ms}\n",
     "g.yaml:1: iscsi.default-time2wait: must be whole seconds"},
    {"Switch", "core-dumps: maybe\n", "g.yaml:1: core-dumps: got 'maybe', allowed on or off"},
    {"BytesBeyondAscii", "core-dumps: \"\\u00fc\"\n",
     "g.yaml:1: core-dumps: got '?\?', allowed on or off"},
    {"Choice", "log: {level: loud}\n",
     "g.yaml:1: log.level: got 'loud', allowed one of debug, info, warning, error"},
    {"HostNameToListenOn", "listen: [{address: 'localhost:3260'}]\n",
     "g.yaml:1: listen[0].address: 'localhost:3260' is not a numeric address and port; write "
     "192.0.2.1:3260 or [2001:db8::1]:3260"},
    {"PinsDisagree", "reactors: 2\nreactor-cpus: [1]\n",
     "g.yaml:2: reactor-cpus: must hold one CPU for each reactor"},
    {"TargetName", "targets: [{iqn: iqn.2026-13.example:t, hosts: []}]\n",
     "g.yaml:1: targets[0].iqn: got 'iqn.2026-13.example:t'; an iSCSI name must have the form "
     "iqn.yyyy-mm.domain[:name], eui.<16 hex digits> or naa.<16 or 32 hex digits>"},
    {"AnyAndSome", "targets: [{hosts: [{initiators: ['*', iqn.2026-11.example:a]}]}]\n",
     "g.yaml:1: targets[0].hosts[0].initiators: \"*\" stands for any and must stand alone"},
    {"Product", with_luns("  - {id: 0, backend: 'null', size: 1GiB, product: \"a\\tb\"}\n"),
     "g.yaml:5: targets[0].luns[0].product: holds a control character"},
    {"Oui", with_luns("  - {id: 0, backend: 'null', size: 1GiB, oui: '00:1b:2x'}\n"),
     "g.yaml:5: targets[0].luns[0].oui: '00:1b:2x' is not an OUI; write six hexadecimal digits, "
     "00:1b:21"},
    {"Uuid",
     with_luns("  - {id: 0, backend: 'null', size: 1GiB, uuid: " + std::string(36, 'x') + "}\n"),
     "g.yaml:5: targets[0].luns[0].uuid: '" + std::string(36, 'x') +
         "' is not a UUID; write one as uuidgen prints it, xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"},
    {"PathForNull", with_luns("  - {id: 0, backend: 'null', size: 1GiB, path: /x}\n"),
     "g.yaml:5: targets[0].luns[0].path: null has no path"},
    {"RbdForAFile", with_luns("  - {id: 0, backend: file, path: /x, rbd: {pool: p, image: i}}\n"),
     "g.yaml:5: targets[0].luns[0].rbd: is for rbd only"},
    {"NoRbd", with_luns("  - {id: 0, backend: rbd}\n"),
     "g.yaml:5: targets[0].luns[0].rbd: is missing; name pool and image"},
    {"RbdWithoutImage", with_luns("  - {id: 0, backend: rbd, rbd: {pool: p}}\n"),
     "g.yaml:5: targets[0].luns[0].rbd.image: is missing; allowed 1 to 255 bytes of text"},
    {"RbdSnapshot", with_luns("  - {id: 0, backend: rbd, rbd: {pool: p, image: i@s}}\n"),
     "g.yaml:5: targets[0].luns[0].rbd.image: got 'i@s'; '/' and '@' can't be part of it"},
    {"IoForBlock", with_luns("  - {id: 0, backend: block, path: /dev/x, io: direct}\n"),
     "g.yaml:5: targets[0].luns[0].io: is for file only"},
    {"FileWithoutPath", with_luns("  - {id: 0, backend: file, size: 1GiB}\n"),
     "g.yaml:5: targets[0].luns[0].backend: no path; write file:/path/to/it"},
    {"PhysicalBelowLogical",
     with_luns("  - {id: 0, backend: 'null', size: 1GiB, block-size: 4096, "
               "physical-block-size: 512}\n"),
     "g.yaml:5: targets[0].luns[0].physical-block-size: is smaller than block-size"},
    {"LunNumber", with_luns("  - {id: 16384, backend: 'null', size: 1GiB}\n"),
     "g.yaml:5: targets[0].luns[0].id: got 16384, allowed 0 to 16383"},
};
INSTANTIATE_TEST_SUITE_P(Values, BadInput, testing::ValuesIn(kValues), case_name);

const Fault kTwice[] = {
    {"Portal", "listen:\n- address: 127.0.0.1:3260\n- address: 127.0.0.1\n",
     "g.yaml:3: listen[1].address: address 127.0.0.1:3260 is taken by listen[0].address in line 2"},
    {"TargetName",
     "targets:\n- {iqn: iqn.2026-11.example:t, hosts: []}\n"
     "- {iqn: IQN.2026-11.example:T, hosts: []}\n",
     "g.yaml:3: targets[1].iqn: name iqn.2026-11.example:t is taken by targets[0].iqn in line 2"},
    {"LunNumber",
     with_luns("  - {id: 1, backend: 'null', size: 1GiB}\n  - {id: 1, backend: memory, size: 1MiB}"
               "\n"),
     "g.yaml:6: targets[0].luns[1].id: LUN 1 is taken by targets[0].luns[0].id in line 5"},
    {"Path",
     with_luns("  - {id: 1, backend: file, path: /a/b}\n"
               "  - {id: 2, backend: file, path: /a/./b}\n"),
     "g.yaml:6: targets[0].luns[1].path: path /a/b is taken by targets[0].luns[0].path in line 5"},
    {"Uuid",
     with_luns("  - {id: 1, backend: 'null', size: 1MiB, uuid: "
               "0F7C3A52-1111-4222-8333-944444444444}\n"
               "  - {id: 2, backend: 'null', size: 1MiB, uuid: "
               "0f7c3a52-1111-4222-8333-944444444444}\n"),
     "g.yaml:6: targets[0].luns[1].uuid: UUID 0f7c3a52-1111-4222-8333-944444444444 is taken by "
     "targets[0].luns[0].uuid in line 5"},
    {"Initiator",
     "targets:\n- hosts:\n  - initiators: [iqn.2026-11.example:a]\n"
     "  - initiators: [iqn.2026-11.example:A]\n  iqn: iqn.2026-11.example:t\n",
     "g.yaml:4: targets[0].hosts[1].initiators: initiator iqn.2026-11.example:a is taken by "
     "targets[0].hosts[0].initiators in line 3"},
};
INSTANTIATE_TEST_SUITE_P(Twice, BadInput, testing::ValuesIn(kTwice), case_name);

TEST(Parse, AllErrorsAreReportedTogetherUpToALimit) {
  std::string yaml = "targets:\n";
  for (int i = 0; i < 60; ++i) yaml += "- {hosts: [], iqn: x" + std::to_string(i) + "}\n";
  const Result<Config> config = read_yaml(yaml);
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error(), HasSubstr("g.yaml:2:"));
  EXPECT_THAT(config.error(), HasSubstr("g.yaml:51:"));
  EXPECT_THAT(config.error(), HasSubstr("\nand 10 more"));
}

TEST(Parse, AnEmptyFileYieldsTheDefaults) {
  const Result<Config> config = read_yaml("");
  ASSERT_TRUE(config.ok()) << config.error();
  ASSERT_EQ(config.value().portals.size(), 1u);
  EXPECT_EQ(config.value().portals[0].address, "0.0.0.0:3260");
  EXPECT_GE(config.value().reactors, 1u);
  EXPECT_FALSE(config.value().admin_socket.empty());
}

TEST(Parse, ThePackagedSampleIsValid) {
  const Result<Source> source = read_source(SLUICE_GATEWAY_DIR "/packaging/gateway.yaml");
  ASSERT_TRUE(source.ok()) << source.error();
  Result<Config> config = parse_config(source.value());
  ASSERT_TRUE(config.ok()) << config.error();
  EXPECT_TRUE(complete(&*config, "gateway.yaml").ok());
}

// The default each key's row claims, written out, must change nothing.
TEST(Parse, ExplicitDefaultsEqualOmittedDefaults) {
  const std::map<std::string, std::string> places = {
      {"", ""}, {"log", "log: "}, {"iscsi", "iscsi: "}, {"connections", "connections: "}};
  const Config plain = read_yaml("").value();
  int checked = 0;
  for (const auto& [section, prefix] : places) {
    for (const Key& key : keys_of(section)) {
      if (key.fallback.empty() || key.fallback.front() == '(') continue;
      const std::string pair = std::string(key.name) + ": " + std::string(key.fallback);
      const Result<Config> config =
          read_yaml(prefix.empty() ? pair + "\n" : prefix + "{" + pair + "}\n");
      ASSERT_TRUE(config.ok()) << config.error();
      const Result<Reloaded> done = reload(plain, config.value());
      ASSERT_TRUE(done.ok());
      EXPECT_TRUE(done.value().nothing() && done.value().changes.need_restart.empty()) << pair;
      ++checked;
    }
  }
  EXPECT_GE(checked, 20);
}

TEST(Parse, DefaultsOfALunAreAsDocumented) {
  std::string all;
  for (const Key& key : keys_of("luns")) {
    if (key.required || key.fallback.front() == '(') continue;
    all += ", " + std::string(key.name) + ": " + std::string(key.fallback);
  }
  const std::string head = "  - {id: 0, backend: file, path: /disk, size: 1GiB";
  const Result<Config> given = read_yaml(with_luns(head + all + "}\n"));
  const Result<Config> plain = read_yaml(with_luns(head + "}\n"));
  ASSERT_TRUE(given.ok()) << given.error();
  const Result<Reloaded> done = reload(plain.value(), given.value());
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(done.value().nothing() && done.value().changes.need_restart.empty());
}

TEST(Parse, AnRbdSectionDefinesTheImageAndItsCephAccess) {
  const Result<Config> config = read_yaml(
      with_luns("  - id: 0\n    backend: rbd\n    rbd: {pool: p, namespace: n, image: i, "
                "monitors: ['192.0.2.1', '192.0.2.2:3300'], user: gw, keyring: /k, conf: /c}\n"));
  ASSERT_TRUE(config.ok()) << config.error();
  const backend::Spec& spec = config.value().targets[0].luns[0].spec;
  EXPECT_EQ(spec.path, "p/n/i");
  EXPECT_EQ(spec.ceph.monitors, "192.0.2.1,192.0.2.2:3300");
  EXPECT_EQ(spec.ceph.user, "gw");
  EXPECT_EQ(spec.ceph.keyring_file, "/k");
  EXPECT_EQ(spec.ceph.config_file, "/c");
}

TEST(Parse, EveryBoundOfTheTableIsReachableAndEnforced) {
  for (const char* section : {"", "iscsi", "connections"}) {
    for (const Key& key : keys_of(section)) {
      const bool number = key.type == KeyType::kNumber || key.type == KeyType::kSize;
      if (!number) continue;
      const std::string unit = key.type == KeyType::kSize ? "B" : "";
      const auto read = [&](uint64_t value) {
        const std::string pair = std::string(key.name) + ": " + std::to_string(value) + unit;
        return read_yaml(*section == '\0' ? pair : std::string(section) + ": {" + pair + "}").ok();
      };
      const bool bound_by_another = key.name == "first-burst-length";
      EXPECT_EQ(read(key.max), !bound_by_another) << key.name;
      EXPECT_TRUE(read(key.min)) << key.name;
      EXPECT_FALSE(read(key.max + 1)) << key.name;
      EXPECT_FALSE(key.min > 0 && read(key.min - 1)) << key.name;
    }
  }
}

TEST(Parse, ATargetAcceptsAtMostTheLunCountOfTheControlPlane) {
  const auto read = [](unsigned count) {
    std::string luns;
    for (unsigned id = 0; id < count; ++id) {
      luns += "  - {id: " + std::to_string(id) + ", backend: 'null', size: 1GiB}\n";
    }
    return read_yaml(with_luns(luns));
  };
  const Result<Config> most = read(4096);  // MaxLuns of controlplane/internal/model
  ASSERT_TRUE(most.ok()) << most.error();
  EXPECT_EQ(most.value().targets[0].luns.size(), 4096u);
  EXPECT_EQ(most.value().targets[0].luns.back().id, 4095u);
  const Result<Config> more = read(4097);
  ASSERT_FALSE(more.ok());
  EXPECT_THAT(more.error(), HasSubstr("targets[0].luns: "));
  EXPECT_THAT(more.error(), HasSubstr("4097"));
  EXPECT_THAT(more.error(), HasSubstr("0 to 4096"));
}

TEST(Parse, ACompleteTargetIsParsedAsWritten) {
  const Result<Config> config = read_yaml(R"(
listen:
- {address: "[::1]", advertise: 192.0.2.9:3261, tpgt: 7}
reactor-cpus: [3, 5]
log: {level: debug, format: json}
iscsi: {header-digest: require, data-digest: refuse, initial-r2t: yes}
targets:
- iqn: iqn.2026-11.Example:Store
  alias: "Lager"
  hosts:
  - initiators: [IQN.1993-08.org.debian:01:ABC, eui.02004567A425678D]
    read-only: on
  luns:
  - {id: 7, backend: file, path: /srv/a.img, size: 2GiB, io: direct, write-cache: on,
     block-size: 4096, oui: "00-1B-21", product: DISK, create: off,
     uuid: 0f7c3a52-1111-4222-8333-944444444444}
)");
  ASSERT_TRUE(config.ok()) << config.error();
  const Config& c = config.value();
  EXPECT_EQ(c.portals[0].address, "[::1]:3260");
  EXPECT_EQ(c.portals[0].advertise, "192.0.2.9:3261");
  EXPECT_EQ(c.portals[0].tpgt, 7);
  EXPECT_EQ(c.reactors, 2u);
  EXPECT_EQ(c.log.level, log::Level::kDebug);
  EXPECT_EQ(c.offer.header_digest, iscsi::Offer::Digest::kRequire);
  EXPECT_TRUE(c.offer.initial_r2t);
  const TargetConfig& target = c.targets.at(0);
  EXPECT_EQ(target.iqn, "iqn.2026-11.example:store");
  EXPECT_EQ(target.hosts.at(0).initiators,
            (std::vector<std::string>{"iqn.1993-08.org.debian:01:abc", "eui.02004567a425678d"}));
  EXPECT_TRUE(target.hosts[0].read_only);
  const LunConfig& lun = target.luns.at(0);
  EXPECT_EQ(describe(lun.spec),
            "file:/srv/a.img, 2GiB, io=direct, block-size=4096, "
            "write-cache=on");
  EXPECT_EQ(lun.oui, 0x001b21u);
  EXPECT_EQ(format_uuid(lun.uuid), "0f7c3a52-1111-4222-8333-944444444444");
}

TEST(Parse, ADerivedUuidChangesWithNumberAndPathButNotWithSizeOrIoMode) {
  const auto uuid = [](const std::string& lun) {
    return format_uuid(read_yaml(with_luns("  - " + lun + "\n")).value().targets[0].luns[0].uuid);
  };
  const std::string first = uuid("{id: 0, backend: file, path: /a, size: 1GiB}");
  EXPECT_EQ(first[14], '5');  // version
  EXPECT_EQ(first, uuid("{id: 0, backend: file, path: /a, size: 2GiB, io: direct}"));
  EXPECT_NE(first, uuid("{id: 1, backend: file, path: /a, size: 1GiB}"));
  EXPECT_NE(first, uuid("{id: 0, backend: file, path: /b, size: 1GiB}"));
  // Never change this value: hosts identify disks by it (DESIGN R13).
  EXPECT_EQ(first, "3ad01548-6f9c-54cd-add8-0d11a21c5205");
}

}  // namespace
}  // namespace sluice::config
