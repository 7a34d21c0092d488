#include "config/parse_targets.h"

#include <algorithm>
#include <cstdlib>

#include "backend/spec.h"
#include "base/limits.h"
#include "config/default_name.h"
#include "config/protected_file.h"
#include "config/uuid.h"
#include "iscsi/login/names.h"

namespace sluice::config {
namespace {

Result<std::string> secret_from_file(const std::string& path) {
  constexpr size_t kNewline = 2;  // CR LF
  Result<FileText> file = read_file(path, limits::kMaxChapSecret + kNewline);
  if (!file) return Error{file.error()};
  if (!file->fault.empty()) return Error{file->fault};
  std::string secret = std::move(file->text);
  if (!secret.empty() && secret.back() == '\n') secret.pop_back();
  if (!secret.empty() && secret.back() == '\r') secret.pop_back();
  return secret;
}

Result<std::string> secret_from_environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return Error{"the environment has no " + name};
  return std::string(value);
}

// Exactly one of the three; never part of a message.
void read_secret(const Section& section, const SecretRules& rules, ChapConfig* chap) {
  std::string from;
  Result<std::string> secret = Error{"one of secret-file, secret-env and secret must be given"};
  std::string key = "user";
  if (section.has("secret-file") + section.has("secret-env") + section.has("secret") > 1) {
    return section.fault("user", "only one of secret-file, secret-env and secret may be given");
  }
  if (section.has("secret-file")) {
    key = "secret-file";
    section.text(key, &from);
    chap->source = "file " + from;
    secret = secret_from_file(from);
  } else if (section.has("secret-env")) {
    key = "secret-env";
    section.text(key, &from);
    chap->source = "environment " + from;
    secret = secret_from_environment(from);
  } else if (section.has("secret")) {
    key = "secret";
    chap->source = "inline";
    section.text(key, &from);
    if (!rules.inline_fault.empty()) return section.fault(key, rules.inline_fault);
    if (from.empty()) return;  // reported already
    secret = from;
  }
  if (!secret) return section.fault(key, secret.error());
  const size_t size = secret.value().size();
  if (size < limits::kMinChapSecret || size > limits::kMaxChapSecret) {
    return section.fault(key, "the secret has " + std::to_string(size) +
                                  " bytes, allowed 12 to 255 (RFC 7143 §9.2.1)");
  }
  chap->secret = std::move(secret).value();
}

ChapConfig read_chap(const Section& parent, const char* key, const SecretRules& rules) {
  ChapConfig chap;
  if (!parent.has(key)) return chap;
  const Section section = parent.section(key, "chap");
  section.text("user", &chap.user);
  if (section.has("user")) read_secret(section, rules, &chap);
  return chap;
}

void read_both(const Section& section, const SecretRules& rules, ChapConfig* chap,
               ChapConfig* mutual) {
  *chap = read_chap(section, "chap", rules);
  *mutual = read_chap(section, "mutual", rules);
  if (section.has("mutual") && !section.has("chap")) {
    section.fault("mutual", "needs chap: a target proves itself only to who did so first");
  }
  // RFC 7143 §9.2.1: or an attacker could reflect the challenge.
  if (!mutual->secret.empty() && mutual->secret == chap->secret) {
    section.fault("mutual", "must not have the secret of chap");
  }
}

HostConfig read_host(const Section& section, const SecretRules& rules) {
  HostConfig host;
  host.line.number = section.line();
  std::vector<std::string> names;
  section.texts("initiators", &names);
  const bool any = std::find(names.begin(), names.end(), "*") != names.end();
  if (any && names.size() > 1) {
    section.fault("initiators", "\"*\" stands for any and must stand alone");
  }
  for (const std::string& name : names) {
    if (any) break;
    Result<std::string> canonical = iscsi::normalise_name(name);
    if (canonical) {
      host.initiators.push_back(std::move(canonical).value());
    } else {
      section.fault("initiators", "got '" + name + "'; " + canonical.error());
    }
  }
  read_both(section, rules, &host.chap, &host.mutual);
  section.on_off("read-only", &host.read_only);
  return host;
}

uint32_t block_size(const Section& section, const char* key, uint32_t fallback) {
  std::string text = std::to_string(fallback);
  section.choice(key, &text);
  return text == "4096" ? 4096 : 512;
}

void read_image(const Section& section, backend::Spec* spec) {
  std::string pool, space, image;
  section.text("pool", &pool);
  section.text("namespace", &space);
  section.text("image", &image);
  for (const auto& [key, name] :
       {std::pair{"pool", pool}, {"namespace", space}, {"image", image}}) {
    if (name.find_first_of("/@") != std::string::npos) {
      section.fault(key, "got '" + name + "'; '/' and '@' can't be part of it");
    }
  }
  spec->path = pool + "/" + (space.empty() ? "" : space + "/") + image;
  std::vector<std::string> monitors;
  section.texts("monitors", &monitors);
  for (const std::string& monitor : monitors) {
    spec->ceph.monitors += (spec->ceph.monitors.empty() ? "" : ",") + monitor;
  }
  section.text("conf", &spec->ceph.config_file);
  spec->ceph.user = "admin";
  section.text("user", &spec->ceph.user);
  section.text("keyring", &spec->ceph.keyring_file);
}

void read_spec(const Section& section, backend::Spec* spec) {
  section.choice("backend", &spec->kind);
  section.text("path", &spec->path);
  section.size("size", &spec->size);
  spec->block_size = block_size(section, "block-size", 512);
  std::string io = "buffered";
  section.choice("io", &io);
  spec->direct = io == "direct";
  section.on_off("write-cache", &spec->write_cache);
  section.on_off("read-only", &spec->read_only);
  section.on_off("create", &spec->create);
  if (spec->kind.empty()) return;  // reported already
  const bool has_path = backend::is_file_or_device(*spec);
  if (section.has("path") && !has_path) section.fault("path", spec->kind + " has no path");
  if (section.has("rbd") && spec->kind != "rbd") section.fault("rbd", "is for rbd only");
  if (spec->kind == "rbd") {
    if (!section.has("rbd")) return section.fault("rbd", "is missing; name pool and image");
    const size_t before = section.faults().count();
    read_image(section.section("rbd", "rbd"), spec);
    if (section.faults().count() != before) return;
  }
  for (const char* key : {"io", "create"}) {
    if (section.has(key) && spec->kind != "file") section.fault(key, "is for file only");
  }
  if (section.has("size") && spec->size == 0) return;  // reported already
  const Result<void> valid = backend::validate(*spec);
  if (!valid) section.fault("backend", valid.error());
}

// "00:1b:21", "00-1b-21" or "001b21".
Result<uint32_t> parse_oui(std::string_view text) {
  std::string digits;
  for (const char c : text) {
    if (c != ':' && c != '-') digits += c;
  }
  const bool hexadecimal = digits.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (digits.size() != 6 || !hexadecimal) {
    return Error{"'" + std::string(text) +
                 "' is not an OUI; write six hexadecimal digits, 00:1b:21"};
  }
  return static_cast<uint32_t>(std::stoul(digits, nullptr, 16));
}

LunConfig read_lun(const Section& section) {
  LunConfig lun;
  lun.line.number = section.line();
  section.number("id", &lun.id);
  std::string uuid;
  section.text("uuid", &uuid);
  if (!uuid.empty()) {
    const Result<Uuid> parsed = parse_uuid(uuid);
    if (parsed) {
      lun.uuid = parsed.value();
    } else {
      section.fault("uuid", parsed.error());
    }
  }
  read_spec(section, &lun.spec);
  lun.physical_block_size = block_size(section, "physical-block-size", 4096);
  if (lun.physical_block_size < lun.spec.block_size) {
    section.fault("physical-block-size", "is smaller than block-size");
  }
  section.text("product", &lun.product);
  if (std::any_of(lun.product.begin(), lun.product.end(),
                  [](char c) { return c < ' ' || c > '~'; })) {
    section.fault("product", "must be ASCII");
  }
  std::string oui;
  section.text("oui", &oui);
  if (!oui.empty()) {
    const Result<uint32_t> parsed = parse_oui(oui);
    if (parsed) {
      lun.oui = parsed.value();
    } else {
      section.fault("oui", parsed.error());
    }
  }
  return lun;
}

TargetConfig read_target(const Section& section, const SecretRules& rules) {
  TargetConfig target;
  target.line.number = section.line();
  std::string iqn = default_target_name();
  section.text("iqn", &iqn);
  Result<std::string> canonical = iscsi::normalise_name(iqn);
  if (canonical) {
    target.iqn = std::move(canonical).value();
  } else {
    section.fault("iqn", "got '" + iqn + "'; " + canonical.error());
  }
  section.text("alias", &target.alias);
  read_hosts(section, rules, &target.hosts);
  for (const Section& lun : section.list("luns", "luns")) target.luns.push_back(read_lun(lun));
  return target;
}

}  // namespace

void read_hosts(const Section& parent, const SecretRules& rules, std::vector<HostConfig>* hosts) {
  for (const Section& section : parent.list("hosts", "hosts")) {
    hosts->push_back(read_host(section, rules));
  }
}

void read_discovery(const Section& section, const SecretRules& rules, DiscoveryConfig* discovery) {
  read_both(section, rules, &discovery->chap, &discovery->mutual);
}

void read_targets(const Section& top, const SecretRules& rules,
                  std::vector<TargetConfig>* targets) {
  for (const Section& section : top.list("targets", "targets")) {
    targets->push_back(read_target(section, rules));
  }
}

}  // namespace sluice::config
