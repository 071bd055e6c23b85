// A certified provider of OpenID Connect for tests: node provider.mjs PORT CLIENT_ADDRESS KEY_ID
// A login name is the account. `many` is in 201 groups, `overage` in more than the provider lists, `nobody` in none.
import { generateKeyPairSync } from 'node:crypto';
import Provider from 'oidc-provider';

const [port, client, keyId] = process.argv.slice(2);
const address = `http://127.0.0.1:${port}`;
const others = Array.from({ length: 200 }, (_, number) => `team-${number}`);
const groups = { many: [...others, 'gpu-operators'], nobody: undefined, overage: undefined };
const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });

const provider = new Provider(address, {
  jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: keyId, use: 'sig', alg: 'RS256' }] },
  clients: [{
    client_id: 'quarterdeck',
    client_secret: 'a-secret-of-the-client',
    redirect_uris: [`${client}/sign-in/sso/callback`],
    backchannel_logout_uri: `${client}/sign-in/sso/logout`,
    backchannel_logout_session_required: true,
  }],
  claims: {
    openid: ['sub', 'sid'], profile: ['preferred_username', '_claim_names'], groups: ['groups'], email: ['email'],
  },
  scopes: ['openid', 'profile', 'email', 'groups'],
  pkce: { required: () => true },
  cookies: { keys: ['for tests only'] },
  // The logout goes to this machine, which the provider's own guard would refuse.
  fetch: (url, { dispatcher, ...options }) => fetch(url, options),
  features: { backchannelLogout: { enabled: true } },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      preferred_username: id,
      ...(id === 'overage' ? { _claim_names: { groups: 'src1' } } : {}),
      ...(id in groups ? { groups: groups[id] } : { groups: ['gpu-operators'] }),
    }),
  }),
});
provider.on('server_error', (_, error) => console.error(error));
provider.on('backchannel.error', (_, error) => console.error(error));
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
