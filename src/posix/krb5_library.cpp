// SPDX-License-Identifier: GPL-2.0-or-later
#include "posix/krb5_library.h"

#include "io/private_dir.h"
#include "posix/secret_files.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <string>
#include <unistd.h>

namespace gpuq {
namespace {

/// The part of MIT's ABI used here. All types are opaque pointers.
using Code = std::int32_t;
using Opaque = void*;

/// KRB5_FCC_NOFILE and KRB5_CC_NOTFOUND in krb5.h: a cache without tickets.
constexpr Code k_no_file = -1765328189;
constexpr Code k_not_found = -1765328243;

struct Library {
    Code (*init_context)(Opaque*) = nullptr;
    void (*free_context)(Opaque) = nullptr;
    Code (*resolve)(Opaque, const char*, Opaque*) = nullptr;
    Code (*close)(Opaque, Opaque) = nullptr;
    Code (*principal)(Opaque, Opaque, Opaque*) = nullptr;
    void (*free_principal)(Opaque, Opaque) = nullptr;
    Code (*initialize)(Opaque, Opaque, Opaque) = nullptr;
    Code (*copy)(Opaque, Opaque, Opaque) = nullptr;
    const char* (*message)(Opaque, Code) = nullptr;
    void (*free_message)(Opaque, const char*) = nullptr;
};

template <typename Function>
bool take(void* library, const char* name, Function& function)
{
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

/// The library is never closed: it may have started threads.
bool load(Library& found)
{
    void* library = ::dlopen("libkrb5.so.3", RTLD_NOW | RTLD_LOCAL);
    return library != nullptr && take(library, "krb5_init_context", found.init_context) &&
           take(library, "krb5_free_context", found.free_context) &&
           take(library, "krb5_cc_resolve", found.resolve) &&
           take(library, "krb5_cc_close", found.close) &&
           take(library, "krb5_cc_get_principal", found.principal) &&
           take(library, "krb5_free_principal", found.free_principal) &&
           take(library, "krb5_cc_initialize", found.initialize) &&
           take(library, "krb5_cc_copy_creds", found.copy) &&
           take(library, "krb5_get_error_message", found.message) &&
           take(library, "krb5_free_error_message", found.free_message);
}

/// Error with the library's message; `context` may be null.
Error failed(const Library& krb5, Opaque context, const std::string& name, Code code)
{
    const char* const text = krb5.message(context, code);
    const Error error = fail(Error::Kind::io, fmt::format("{} can't be read: {}", name, text));
    krb5.free_message(context, text);
    return error;
}

Result<void> copy_cache(const Library& krb5, const std::string& from, const std::string& to)
{
    Opaque context = nullptr;
    if (const Code code = krb5.init_context(&context)) {
        return failed(krb5, nullptr, from, code);
    }
    Opaque source = nullptr, target = nullptr, principal = nullptr;
    Code code = krb5.resolve(context, from.c_str(), &source);
    code = code != 0 ? code : krb5.principal(context, source, &principal);
    const bool empty = code == k_no_file || code == k_not_found;
    code = code != 0 ? code : krb5.resolve(context, to.c_str(), &target);
    code = code != 0 ? code : krb5.initialize(context, target, principal);
    code = code != 0 ? code : krb5.copy(context, source, target);
    if (principal != nullptr) {
        krb5.free_principal(context, principal);
    }
    for (Opaque cache : {source, target}) {
        if (cache != nullptr) {
            krb5.close(context, cache);
        }
    }
    const Result<void> copied =
        empty       ? fail(Error::Kind::missing, fmt::format("{} has no tickets", from))
        : code == 0 ? Result<void>()
                    : failed(krb5, context, from, code);
    krb5.free_context(context);
    return copied;
}

} // namespace

Result<std::string> cache_by_krb5(const std::string& name)
{
    Library krb5;
    if (!load(krb5)) {
        return fail(
            Error::Kind::io,
            fmt::format("{} can't be read without libkrb5.so.3, which is not installed", name));
    }
    TRY_ASSIGN(const PrivateDir directory, make_private_dir("krb5read"));
    PosixSecretFiles files;
    const auto copied = copy_cache(krb5, name, fmt::format("FILE:{}/cache", directory.path));
    auto bytes = copied ? files.read(directory.path, "cache") : Result<std::string>(copied.error());
    (void)files.remove_directory(directory.path);
    return bytes;
}

} // namespace gpuq
