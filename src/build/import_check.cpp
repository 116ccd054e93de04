// SPDX-License-Identifier: Apache-2.0
#include "build/import_check.hpp"

#include "base/assert.hpp"
#include "base/text.hpp"
#include "build/torch_version.hpp"
#include "document/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace kb::build {

namespace {

using backend::BackendId;
using backend::FrameworkId;

// The last line of its output is the answer: what a kernel prints while it is imported stands
// before.
constexpr std::string_view kProgram = R"(import importlib.util, json, os, sys
directory, name = sys.argv[1:]
out = {"ops": []}
def answer():
    print("\n" + json.dumps(out))
    sys.exit(0)
before = set()
try:
    import torch
    out["torch"] = torch.__version__
    out["cuda"] = torch.version.cuda
    before = set(torch._C._dispatch_get_all_op_names())
except ImportError as problem:
    out["torch_error"] = str(problem).split("\n")[0]
try:
    init = os.path.join(directory, "__init__.py")
    spec = importlib.util.spec_from_file_location(name, init, submodule_search_locations=[directory])
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
except BaseException as problem:
    out["error"] = (type(problem).__name__ + ": " + str(problem)).split("\n")[0]
    answer()
if "torch" not in out:
    answer()
KEYS = ["CPU", "CUDA", "HIP", "XPU", "MPS", "Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd"]
try:
    from torch._library import simple_registry
except ImportError:
    simple_registry = None
def has_fake(op):
    if simple_registry is None:
        return False
    entry = simple_registry.singleton.find(op.split(".")[0])
    return entry.fake_impl.kernel is not None
for op in sorted(set(torch._C._dispatch_get_all_op_names()) - before):
    keys = [k for k in KEYS if torch._C._dispatch_has_kernel_for_dispatch_key(op, k)]
    schema = ""
    try:
        base, _, overload = op.partition(".")
        schema = str(torch._C._get_schema(base, overload))
    except Exception:
        pass
    fake = has_fake(op) or any(k == "Meta" or k.startswith("Composite") for k in keys)
    out["ops"].append({"name": op, "schema": schema, "keys": keys, "fake": fake})
answer()
)";

OpFacts op_of(const document::Node& node) {
    OpFacts out{.name = node.text_or("name"), .schema = node.text_or("schema")};
    const document::Node* keys = node.find("keys");
    if (keys != nullptr && keys->is_array()) {
        for (const document::Node& key : keys->as_array()) {
            if (key.is_string()) {
                out.keys.push_back(key.as_string());
            }
        }
    }
    const document::Node* fake = node.find("fake");
    out.fake = fake != nullptr && *fake == document::Node{true};
    return out;
}

sys::EnvironmentMap clean(const sys::EnvironmentMap& environment) {
    sys::EnvironmentMap out{{"PYTHONDONTWRITEBYTECODE", "1"}, {"LC_ALL", "C.UTF-8"}};
    for (const char* name : {"PATH", "HOME", "LD_LIBRARY_PATH"}) {
        const auto found = environment.find(name);
        if (found != environment.end()) {
            out.insert(*found);
        }
    }
    return out;
}

std::string last_line(std::string_view text) {
    text = trim(text);
    return std::string{text.substr(text.rfind('\n') + 1)};
}

Error no_answer(const std::string& python, const sys::ProcessResult& result) {
    const std::string said = last_line(result.err);
    return {.code = ErrorCode::unsupported,
            .message = fmt::format("'{}' does not answer: {}{}",
                                   python,
                                   result.status.to_text(),
                                   said.empty() ? "" : ", " + escape_control(said))};
}

/// The dispatch keys of which one must be there for this backend.
std::string_view key_of(BackendId backend) {
    switch (backend) {
    case BackendId::cpu:
        return "CPU";
    case BackendId::cuda:
    case BackendId::rocm: // torch calls it CUDA as well
        return "CUDA";
    case BackendId::xpu:
        return "XPU";
    case BackendId::metal:
        return "MPS";
    case BackendId::cann:
    case BackendId::neuron:
    case BackendId::tpu:
        return ""; // keys of torch's private-use backends, which their packages rename
    }
    KB_ASSERT(false, "the switch names every backend");
}

bool has(const OpFacts& op, std::string_view key) {
    return std::ranges::find(op.keys, key) != op.keys.end();
}

bool is_implemented(const OpFacts& op, std::string_view key) {
    return key.empty() || has(op, key) || has(op, "CompositeImplicitAutograd") ||
           has(op, "CompositeExplicitAutograd");
}

} // namespace

Result<ImportFacts> import_variant(sys::ProcessRunner& processes, const ImportRequest& request) {
    KB_TRY(const sys::ProcessResult result,
           processes.run({.argv = {request.python,
                                   "-I",
                                   "-B",
                                   "-c",
                                   std::string{kProgram},
                                   request.directory.string(),
                                   request.id},
                          .environment = clean(request.environment),
                          .timeout = std::chrono::minutes{5},
                          .max_capture = 16UL << 20U}));
    ImportFacts out;
    if (result.status.kind == sys::ExitStatus::Kind::signalled ||
        result.status.kind == sys::ExitStatus::Kind::timed_out) {
        out.error = fmt::format("the import ends with: {}", result.status.to_text());
        return out;
    }
    const auto node = document::parse_json(last_line(result.out), {});
    if (!result.status.ok() || !node) {
        return no_answer(request.python, result);
    }
    out.torch = leading_version(node->text_or("torch"));
    out.torch_cuda = leading_version(node->text_or("cuda"));
    out.error = escape_control(node->text_or("error"));
    const document::Node* ops = node->find("ops");
    if (ops != nullptr && ops->is_array()) {
        for (const document::Node& op : ops->as_array()) {
            out.ops.push_back(op_of(op));
        }
    }
    return out;
}

std::string import_gap(const backend::Variant& variant, const ImportFacts& facts) {
    if (variant.framework == FrameworkId::tvm_ffi) {
        return {};
    }
    if (!facts.torch) {
        return "this Python has no torch";
    }
    const Version& promised = variant.framework_version;
    const Version here{{facts.torch->major(), facts.torch->minor()}};
    if (variant.framework == FrameworkId::torch && promised != here) {
        return fmt::format("it is for torch {}, this is {}", promised.to_text(), here.to_text());
    }
    if (variant.framework == FrameworkId::torch_stable_abi && promised > here) {
        return fmt::format(
            "it is for torch {} and newer, this is {}", promised.to_text(), here.to_text());
    }
    if (variant.backend == BackendId::cuda && !facts.torch_cuda) {
        return "this torch is built without CUDA";
    }
    const bool elsewhere = variant.backend != BackendId::cpu && variant.backend != BackendId::cuda;
    return elsewhere ? fmt::format("a {} variant cannot be imported here",
                                   backend::to_text(variant.backend))
                     : std::string{};
}

std::vector<check::Finding>
judge_ops(const backend::Variant& variant, const std::string& id, const ImportFacts& facts) {
    std::vector<check::Finding> out;
    const std::string_view key = key_of(variant.backend);
    for (const OpFacts& op : facts.ops) {
        const std::string space = op.name.substr(0, op.name.find("::"));
        check::Finding finding{
            .subject = op.name, .policy = "operators of torch", .found = op.schema, .allowed = id};
        if (space != id) {
            finding.check = "op-namespace";
            finding.message =
                fmt::format("'{}' is registered outside the kernel's own namespace '{}', so two "
                            "kernels or two versions clash",
                            op.name,
                            id);
            finding.next_step = "register it with TORCH_EXTENSION_NAME, or with "
                                "add_op_namespace_prefix in Python";
            out.push_back(finding);
        }
        if (!is_implemented(op, key)) {
            finding.check = "op-implementation";
            finding.allowed = std::string{key};
            finding.message =
                fmt::format("'{}' has a schema and no implementation for {}{}",
                            op.name,
                            key,
                            op.keys.empty() ? "" : ", only for " + join(op.keys, ", "));
            finding.next_step = "add 'm.impl' for it, or take the schema away";
            out.push_back(finding);
        }
        if (!op.fake) {
            finding.check = "op-fake";
            finding.allowed = "a fake, Meta or composite implementation";
            finding.message = fmt::format(
                "'{}' has no fake implementation, so torch.compile cannot trace it", op.name);
            finding.next_step = "register one with torch.library.register_fake";
            out.push_back(finding);
        }
    }
    return out;
}

} // namespace kb::build
