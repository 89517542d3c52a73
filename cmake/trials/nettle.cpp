// SPDX-License-Identifier: GPL-2.0-or-later
#include <nettle/sha2.h>

int main()
{
    sha256_ctx context;
    sha256_init(&context);
    unsigned char digest[SHA256_DIGEST_SIZE];
    sha256_digest(&context, sizeof digest, digest);
    return digest[0] == 0xe3 ? 0 : 1;
}
