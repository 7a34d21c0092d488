// The table itself; keys.h explains the columns.
#include <array>

#include "base/limits.h"
#include "config/keys.h"

namespace sluice::config {
namespace {

using Text = std::string_view;
namespace lim = limits;
constexpr Text kRequired = "(required)";

constexpr Key text(Text name, uint64_t min, uint64_t max, Text fallback, Text meaning) {
  return {name, KeyType::kText, min, max, {}, fallback, fallback == kRequired, meaning};
}
constexpr Key texts(Text name, uint64_t min, uint64_t max, Text fallback, Text meaning) {
  return {name, KeyType::kTexts, min, max, {}, fallback, fallback == kRequired, meaning};
}
constexpr Key number(Text name, uint64_t min, uint64_t max, Text fallback, Text meaning) {
  return {name, KeyType::kNumber, min, max, {}, fallback, fallback == kRequired, meaning};
}
constexpr Key numbers(Text name, uint64_t min, uint64_t max, Text fallback, Text meaning) {
  return {name, KeyType::kNumbers, min, max, {}, fallback, fallback == kRequired, meaning};
}
constexpr Key size(Text name, uint64_t min, uint64_t max, Text fallback, Text meaning) {
  return {name, KeyType::kSize, min, max, {}, fallback, fallback == kRequired, meaning};
}
constexpr Key duration(Text name, uint64_t min, uint64_t max, Text fallback, Text meaning) {
  return {name, KeyType::kDuration, min, max, {}, fallback, fallback == kRequired, meaning};
}
constexpr Key list(Text name, uint64_t min, uint64_t max, Text fallback, Text meaning) {
  return {name, KeyType::kSections, min, max, {}, fallback, fallback == kRequired, meaning};
}
constexpr Key on_off(Text name, Text fallback, Text meaning) {
  return {name, KeyType::kSwitch, 0, 0, {}, fallback, false, meaning};
}
constexpr Key choice(Text name, Text choices, Text fallback, Text meaning) {
  return {name, KeyType::kChoice, 0, 0, choices, fallback, fallback == kRequired, meaning};
}
constexpr Key section(Text name, Text fallback, Text meaning) {
  return {name, KeyType::kSection, 0, 0, {}, fallback, false, meaning};
}

constexpr auto kTop = std::to_array<Key>({
    list("listen", 1, lim::kMaxPortals, "(one entry, 0.0.0.0:3260)",
         "Addresses initiators connect to."),
    number("gateway-number", 1, 65535, "1",
           "This gateway's number, also its ALUA target port group. Gateways that export the same "
           "LUNs must differ."),
    number("reactors", 1, lim::kMaxReactors, "(one per CPU the process may use)",
           "Threads that serve connections, each with an io_uring of its own."),
    numbers("reactor-cpus", 0, 1023, "(not pinned)", "CPUs to pin the reactors to, one for each."),
    size("reactor-memory", lim::kMinReactorMemory, lim::kMaxReactorMemory, "256MiB",
         "Bound of the I/O buffers of each reactor."),
    text("tcp-congestion", 1, 15, "cubic",
         "Congestion control of every connection; `system` leaves the system's default."),
    duration("busy-poll", 0, 1 * kMillisecond, "0s",
             "How long an idle reactor spins before it sleeps: latency for CPU time."),
    text("metrics", 1, 64, "off",
         "Address of the Prometheus endpoint `/metrics`, usually 127.0.0.1:7462; `off` for none."),
    text("admin-socket", 1, 107,
         "(`/run/sluice/gateway.sock` as root, else `$XDG_RUNTIME_DIR/sluice/gateway.sock`)",
         "Local socket that `sluice-gateway sessions` and `luns` ask; `off` for none."),
    text("state-directory", 1, lim::kMaxPathBytes,
         "(`/var/lib/sluice` as root, else `$XDG_STATE_HOME/sluice`)",
         "Where persistent reservations are kept."),
    on_off("core-dumps", "off",
           "Whether a crash may write a core file. It would hold secrets and data, and a process "
           "that writes one dies late."),
    section("log", "", "The log on standard error."),
    section("iscsi", "", "What is offered in login negotiation."),
    section("connections", "", "Bounds on connections."),
    section("discovery", "", "Authentication of discovery sessions; without it none is asked."),
    list("targets", 0, lim::kMaxTargets, "(none)", "What is exported."),
    section("control-plane", "(none)",
            "The cluster this gateway belongs to. With it, `listen`, `gateway-number`, `discovery` "
            "and `targets` come from there and may not be given."),
});

constexpr auto kControlPlane = std::to_array<Key>({
    texts(
        "endpoints", 1, lim::kMaxEndpoints, kRequired,
        "Replicas of the control plane as `host:port`, usually port 7460; each is tried in turn."),
    text("ca", 1, lim::kMaxPathBytes, "(required without insecure-loopback)",
         "PEM file of the authority whose certificates the replicas have."),
    text("certificate", 1, lim::kMaxPathBytes, "(required without insecure-loopback)",
         "PEM file of this gateway's certificate, chain included; it names the gateway."),
    text("key", 1, lim::kMaxPathBytes, "(required without insecure-loopback)",
         "PEM file of its private key, which no other user may read. All three are read again for "
         "every connection."),
    on_off("insecure-loopback", "off",
           "`on`: no TLS at all, to loopback addresses only; for trying out."),
    text("gateway", 1, 253, "(the host's name)", "Name of this gateway's Gateway object."),
    text("node", 1, 253, "(the host's name)",
         "Name of the node, by which local pools find the gateways that can reach them."),
    text(
        "device-records", 1, lim::kMaxPathBytes, "/var/lib/sluice/devices",
        "Directory for records of volumes on whole devices; all gateways of the node share it, and "
        "it outlasts a power cut."),
});

constexpr auto kListen = std::to_array<Key>({
    text("address", 1, 64, kRequired,
         "Numeric address and port: `192.0.2.1:3260`, `[2001:db8::1]:3260`, `0.0.0.0:3260`. "
         "Without a port 3260; port 0 lets the kernel pick one."),
    text("advertise", 1, 64, "(the address)",
         "The address discovery answers, where it differs: behind NAT or a load balancer."),
    number("tpgt", 1, 65535, "1",
           "Target portal group tag: one per gateway and fabric. It is the relative target port "
           "too, so it must be unique among all gateways that export a target."),
});

constexpr auto kLog = std::to_array<Key>({
    choice("level", "debug|info|warning|error", "info", "The least that is written."),
    choice("format", "text|json", "text",
           "`time level message key=value ...`, or one JSON object per line."),
});

constexpr auto kIscsi = std::to_array<Key>({
    size("max-recv-data-segment-length", 512, lim::kMaxSegment, "256KiB",
         "MaxRecvDataSegmentLength: the largest data segment we take."),
    size("max-burst-length", 512, lim::kMaxBurst, "1MiB", "MaxBurstLength."),
    size("first-burst-length", 512, lim::kMaxBurst, "256KiB",
         "FirstBurstLength; at most max-burst-length."),
    number("max-outstanding-r2t", 1, lim::kMaxOutstandingR2t, "8", "MaxOutstandingR2T."),
    on_off("initial-r2t", "off", "InitialR2T: `on` forbids unsolicited Data-Out PDUs."),
    on_off("immediate-data", "on", "ImmediateData: `off` forbids data in the command PDU."),
    duration("default-time2wait", 0, 3600 * kSecond, "2s", "DefaultTime2Wait, whole seconds."),
    duration("default-time2retain", 0, 3600 * kSecond, "0s",
             "DefaultTime2Retain, whole seconds. At ErrorRecoveryLevel 0 nothing is retained."),
    choice("header-digest", "allow|require|refuse", "allow",
           "CRC32C over PDU headers: left to the initiator, demanded, or never."),
    choice("data-digest", "allow|require|refuse", "allow", "CRC32C over data segments."),
});

constexpr auto kConnections = std::to_array<Key>({
    number("max", 1, lim::kMaxConnections, "4096",
           "Connections of hosts at once; more are closed as they come. The forwarding port has "
           "bounds of its own. Fewer, and a warning, where RLIMIT_NOFILE leaves too little room."),
    number(
        "max-unauthenticated", 1, lim::kMaxUnauthenticated, "256",
        "Of them, those whose login is not accepted yet: of hosts, too. Three quarters of these "
        "may come from one address (IPv6: /64). Who waits for an old session of the same name to "
        "end is none of them."),
    duration("login-timeout", 1 * kSecond, 60 * kSecond, "15s",
             "A login that takes longer is dropped."),
    duration("nop-silence", 500 * kMillisecond, lim::kDiscardSilence, "1500ms",
             "A session silent for so long is pinged with a NOP-In."),
    duration("nop-timeout", 500 * kMillisecond, lim::kDiscardSilence, "1500ms",
             "A ping unanswered for so long closes the connection. Both together may take 3s at "
             "most: a retry over another path must not be overtaken."),
    number("command-window", 1, lim::kMaxCommandWindow, "128",
           "Commands an initiator may have under way per session (MaxCmdSN)."),
});

constexpr auto kDiscovery = std::to_array<Key>({
    section("chap", "(none asked)", "What the initiator must prove."),
    section("mutual", "(none given)", "What we prove when asked; needs `chap`."),
});

constexpr auto kTargets = std::to_array<Key>({
    text("iqn", 1, lim::kMaxIscsiName, "(`iqn.2026-11.dev.sluice:` and the host's name)",
         "The target's iSCSI name: iqn., eui. or naa."),
    text("alias", 0, 255, "(none)", "TargetAlias, a name for people."),
    list("hosts", 0, lim::kMaxHosts, kRequired,
         "The hosts that may log in. The first entry that names the initiator counts. `[]` admits "
         "no initiator, `[{initiators: [\"*\"]}]` every initiator."),
    list("luns", 0, lim::kMaxLuns, "(none)", "Its logical units."),
});

constexpr auto kHosts = std::to_array<Key>({
    texts("initiators", 1, lim::kMaxInitiators, kRequired,
          "iSCSI names of the host; the single entry `\"*\"` stands for any."),
    section("chap", "(none asked)", "What the initiator must prove."),
    section("mutual", "(none given)",
            "What we prove when asked; needs `chap`, and another secret."),
    on_off("read-only", "off", "`on` refuses this host writes and reservations."),
});

constexpr auto kChap = std::to_array<Key>({
    text("user", 1, lim::kMaxChapUser, kRequired, "The CHAP name."),
    text("secret-file", 1, lim::kMaxPathBytes, "(none)",
         "A file that holds the secret, 12 to 255 bytes, and nothing else (one newline at the end "
         "is cut off). Windows initiators take 12 to 16 bytes."),
    text("secret-env", 1, 255, "(none)", "An environment variable that holds the secret."),
    text("secret", lim::kMinChapSecret, lim::kMaxChapSecret, "(none)",
         "The secret itself; only in a file that no other user can read. One of the three must be "
         "given."),
});

constexpr auto kLuns = std::to_array<Key>({
    number("id", 0, lim::kMaxLunNumber, kRequired, "The LUN's number."),
    text(
        "uuid", 36, 36, "(derived from iqn, id, backend and path)",
        "The volume's permanent identity; VPD designators and serial number follow from it. Set "
        "it: "
        "a derived one changes when the LUN is renamed or moved, and hosts then see another disk."),
    choice("backend", "null|memory|file|block|sg|nvme|rbd", kRequired,
           "Where the data lives: nowhere (reads zeros), in memory (lost at exit), in a file, on a "
           "block device, on a SCSI device or NVMe namespace that is handed commands of its own "
           "kind, in an image of Ceph."),
    text("path", 1, lim::kMaxPathBytes, "(none)",
         "File or device; required by `file`, `block`, `sg` (/dev/sgN) and `nvme` (/dev/ngXnY)."),
    section("rbd", "(none)", "The image and its cluster; required by `rbd`."),
    size("size", 512, uint64_t{INT64_MAX}, "(the file's, device's or image's own)",
         "Capacity, a multiple of block-size; grows only. Required by `null` and `memory`, and by "
         "a `file` to be created."),
    choice("block-size", "512|4096", "512", "Logical block size in bytes."),
    choice("physical-block-size", "512|4096", "4096",
           "Physical block size as reported; at least block-size."),
    choice("io", "buffered|direct", "buffered",
           "`direct` bypasses the page cache (O_DIRECT); `file` only, `block` always does."),
    on_off("write-cache", "off",
           "`off`: a write is acknowledged once it is durable. `on`: once it is taken; SYNCHRONIZE "
           "CACHE and FUA are honoured. Images have no cache that could be turned on."),
    on_off("read-only", "off", "`on` refuses every host writes and reservations of the LUN."),
    on_off("create", "on", "Whether a missing `file` is created, sparse; needs `size`."),
    text("product", 1, 16, "VOLUME", "INQUIRY's product identification, ASCII."),
    text("oui", 6, 8, "(none)",
         "An IEEE OUI, `00:1b:21`: the NAA designator is then of type 6, else 3 (locally "
         "assigned)."),
});

constexpr auto kRbd = std::to_array<Key>({
    text("pool", 1, 255, kRequired, "The pool the image is in."),
    text("namespace", 1, 255, "(none)", "The namespace in that pool."),
    text("image", 1, 255, kRequired,
         "An image that exists. It needs the feature exclusive-lock, and must not have "
         "object-map, fast-diff or journaling."),
    texts("monitors", 1, 32, "(those of conf)", "Addresses of the cluster's monitors."),
    text("conf", 1, lim::kMaxPathBytes, "(`/etc/ceph/ceph.conf`, unless monitors are given)",
         "Configuration file of the cluster."),
    text("user", 1, 255, "admin", "Who we are to Ceph: `sluice` of client.sluice."),
    text("keyring", 1, lim::kMaxPathBytes, "(where conf says)",
         "File with the user's key. It needs the capabilities `profile rbd` of monitors and of the "
         "pool's OSDs."),
});

constexpr auto kChapFile = std::to_array<Key>({
    list("hosts", 0, lim::kMaxHosts, "(every initiator)",
         "As `hosts` of a target; for every `--target` of the command line."),
    section("discovery", "", "As `discovery` above."),
});

constexpr auto kSchemas = std::to_array<Schema>({
    {"", "Top level", "", kTop},
    {"listen", "listen: [...]", "One entry per portal.", kListen},
    {"log", "log", "", kLog},
    {"iscsi", "iscsi", "Each is negotiated by its own rule (RFC 7143 §13); these are our offers.",
     kIscsi},
    {"connections", "connections", "", kConnections},
    {"discovery", "discovery", "", kDiscovery},
    {"targets", "targets: [...]", "One entry per target.", kTargets},
    {"hosts", "targets: [{hosts: [...]}]", "One entry per host.", kHosts},
    {"chap", "chap and mutual", "The same keys wherever `chap` or `mutual` stands.", kChap},
    {"luns", "targets: [{luns: [...]}]", "One entry per LUN.", kLuns},
    {"rbd", "targets: [{luns: [{rbd}]}]", "An image of Ceph. Lines of other keys apply as well.",
     kRbd},
    {"control-plane", "control-plane", "", kControlPlane},
    {"chap-file", "The file of --chap-file", "Hosts and secrets for a gateway run by flags alone.",
     kChapFile},
});

}  // namespace

std::span<const Schema> schemas() { return kSchemas; }

}  // namespace sluice::config
